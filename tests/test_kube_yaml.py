"""YAML as Kubernetes reads it: one table for manifests and for configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilotage.config.located import read_documents
from pilotage.kube_yaml import YamlError, documents


def read(text: str | bytes) -> list[Any]:
    return [document.value for document in documents(text)]


AS_KUBECTL_READS: list[tuple[str, Any]] = [
    *((text, True) for text in ("yes", "on", "y", "Y", "ON", "True", "TRUE")),
    *((text, False) for text in ("no", "No", "n", "off", "false")),
    *((text, None) for text in ("~", "null", "Null", "NULL", "")),
    *((text, text) for text in ("tRue", "nUll", "yEs", "<<", "=", ".", "-.", "_1", "1e", "12E", "100m", "1.2.3")),
    *((text, text) for text in ("2026-01-01", "2026-01-01T10:00:00Z", "1:30", "22:22:22", "1:30.5", "1e400")),
    *((text, text) for text in ("0x", "0b", "0o", "0o8", "0b2")),
    *((text, 1000) for text in ("1e3", "1E+3", "1_000", "+1000", "1000.", "1000.0")),
    *((text, 31) for text in ("0x1F", "0X1F", "+0x1F", "0x1_F")),
    *((text, 15) for text in ("017", "0o17", "0O17", "0_17", "0b1111", "0B1111")),
    *((text, -15) for text in ("-017", "-0o17", "-0xF", "-0b1111", "-15")),
    *((text, -0.5) for text in ("-.5", "-0.5", "-5e-1")),
    ("08", 8),
    ("-0", 0),
    ("685_230.15", 685230.15),
    ("1e-7", 1e-07),
    ("1e21", 1e21),
    ("18446744073709551615", 18446744073709551615),
    ("100000000000000000000", 100000000000000000000),
    ("'5'", "5"),
    ('"yes"', "yes"),
    ("!!str 5", "5"),
    ("!!int '5'", 5),
    ("!!float 5", 5),
]
"""Scalars, and what `kubectl patch --local -o json` made of them in a ConfigMap (kubectl 1.37)."""


def of_a_manifest(text: str) -> Any:
    (document,) = documents(text)
    return document.value


def of_a_configuration(text: str) -> Any:
    (document,), problems = read_documents(text)
    assert not problems
    return document.plain()


@pytest.mark.parametrize("read_one", [of_a_manifest, of_a_configuration])
@pytest.mark.parametrize(("text", "value"), AS_KUBECTL_READS, ids=[repr(text) for text, _ in AS_KUBECTL_READS])
def test_scalars_are_read_as_kubectl_reads_them(read_one: Callable[[str], Any], text: str, value: Any) -> None:
    found = read_one(f"v: {text}")["v"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("read_one", [of_a_manifest, of_a_configuration])
@pytest.mark.parametrize(
    ("key", "name"),
    [("yes", "true"), ("y", "true"), ("010", "8"), ("1.50", "1.5"), ("1e3", "1000"), ("8080", "8080"), ("'y'", "y")],
)
def test_keys_are_the_texts_that_kubectl_makes_of_them(read_one: Callable[[str], Any], key: str, name: str) -> None:
    assert read_one(f"{key}: x") == {name: "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 2026-01-01T00:00:00Z", {"a": "2026-01-01T00:00:00Z"}),
        ("a: 22:22", {"a": "22:22"}),
        ("a: 1:30.5", {"a": "1:30.5"}),
        ("8080: x", {"8080": "x"}),
        ("true: x", {"true": "x"}),
        ("a: 12", {"a": 12}),
        ("a: -1.5", {"a": -1.5}),
        ("a: 0644", {"a": 420}),
        ("a: 0x1F", {"a": 31}),
        ("a: 100m", {"a": "100m"}),
        ("a: 12E", {"a": "12E"}),
        ("a: =", {"a": "="}),
        ("a: yes", {"a": True}),
        ("a: ~", {"a": None}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ('{"a": [1, true, null]}', {"a": [1, True, None]}),
    ],
)
def test_values_are_those_of_json(text: str, value: Any) -> None:
    assert read(text) == [value]


def test_documents_are_numbered_as_they_stand_in_the_file() -> None:
    found = list(documents("---\n---\na: 1\n---\n# nothing here\n---\nb: 2\n"))
    assert [(document.number, document.value) for document in found] == [(2, {"a": 1}), (4, {"b": 2})]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\n---\nb: [1, 2\nc: 3", "document 2: line 4, column 2: is no valid YAML"),
        ("a: 1\na: 2", "document 1: line 2, column 1: a: is there twice (already in line 1)"),
        ("spec:\n  x: !!set {a, b}", "document 1: line 2, column 6: spec.x: a set has no place in JSON"),
        ("a: [.inf]", "document 1: line 1, column 5: a[0]: .inf has no place in JSON"),
        ("a: !!python/object:os.system x", "document 1: line 1"),
        ("a: &x [*x]", "document 1: is nested too deeply"),
        (b"a: \xff\xfe", "document 1:"),
        ("a: [[[[" + "[" * 5000, "document 1:"),
        ("? [a, b]\n: c", "document 1:"),
        # libyaml's own way of building nodes would end the process here.
        ("[" * 200_000 + "]" * 200_000, "document 1: is nested too deeply"),
    ],
)
def test_what_makes_no_sense_is_rejected_with_its_place(text: str | bytes, problem: str) -> None:
    with pytest.raises(YamlError) as refused:
        read(text)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_aliases_within_aliases_do_not_eat_the_machine() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(YamlError, match="aliases make it too large"):
        read("\n".join(lines))


@pytest.mark.parametrize("text", ["9" * 6000, "0x" + "f" * 9000, "1" + "0" * 5000, "0" * 5000 + "7", "1e999999"])
def test_numbers_of_any_length_are_read(text: str) -> None:
    """Too large for a number, they are texts, as in kubectl; leading zeros do not count."""
    (found,) = documents(f"a: {text}")
    assert found.value == {"a": 7 if text.endswith("07") else text}
