from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.yaml_documents import YamlError, documents


def read(text: str | bytes) -> list[Any]:
    return [document.value for document in documents(text)]


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
        ("a: 1\na: 2", 'document 1: line 2, column 1: is no valid YAML: key "a" is there twice'),
        ("spec:\n  x: !!set {a, b}", "document 1: spec.x: a set has no place"),
        ("a: [.inf]", "document 1: a[0]: a float has no place"),
        ("a: !!python/object:os.system x", "document 1: line 1"),
        ("a: &x [*x]", "document 1: is nested too deeply"),
        (b"a: \xff\xfe", "document 1:"),
        ("a: [[[[" + "[" * 5000, "document 1:"),
        ("? [a, b]\n: c", "document 1:"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(text: str | bytes, problem: str) -> None:
    with pytest.raises(YamlError) as refused:
        read(text)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_aliases_within_aliases_do_not_eat_the_machine() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(YamlError, match="aliases make it too large"):
        read("\n".join(lines))
