"""Messages about objects that do not decode."""

from __future__ import annotations

import pickle

import pytest

from pilotage.model.errors import DecodeError, explain_problem, recover_key


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        (
            "Expected `object`, got `str` - at `$.spec.containers[0]`",
            "spec.containers[0]",
            "expected object, got string",
        ),
        ("Expected `int | null`, got `float` - at `$.a`", "a", "expected integer, got number"),
        ("Expected `int | str`, got `bool` - at `$.a[...].b`", "a[*].b", "expected integer or string, got boolean"),
        ("Expected `int` >= -5 - at `$.a`", "a", "expected integer >= -5"),
        ("Expected `object`, got `array`", "", "expected object, got array"),
        ("Object missing required field `name` - at `$.metadata`", "metadata.name", "required, but missing"),
        ("Object missing required field `metadata`", "metadata", "required, but missing"),
        ("JSON is malformed: invalid character (byte 3)", "", "JSON is malformed: invalid character (byte 3)"),
        ("Input data was truncated", "", "input data was truncated"),
    ],
)
def test_explain_problem_translates_to_kubernetes_words(text: str, path: str, problem: str) -> None:
    assert explain_problem(text) == (path, problem)


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b'{"metadata":{"name":"a","namespace":"b"}}', "b/a"),
        (b'{"metadata":{"name":"a"}}', "a"),
        (b'{"metadata":{"name":5,"namespace":"b"}}', "b"),
        (b'{"metadata":[]}', ""),
        (b"[]", ""),
        (b"", ""),
        (b'{"kind":"Pod","metadata":{"name":"a","namespace":"b"},"spec":', "b/a"),
        (b'{"kind":"Pod","metadata":{"namespace" : "b", "name" : "a"', "b/a"),
        (b'{"spec":{"name":"x"', ""),
    ],
)
def test_recover_key_reads_what_it_can(data: bytes, key: str) -> None:
    assert recover_key(data) == key


def test_decode_error_reads_as_one_line_without_empty_parts() -> None:
    assert str(DecodeError("Pod", "ns/a", "spec", "bad")) == "Pod ns/a: spec: bad"
    assert str(DecodeError("Pod", "", "", "bad")) == "Pod: bad"


def test_decode_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(DecodeError("Pod", "ns/a", "spec", "bad")))
    assert (error.kind, error.key, error.path, error.problem) == ("Pod", "ns/a", "spec", "bad")
