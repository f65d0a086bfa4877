"""Values of YAML and JSON texts, with their lines."""

from __future__ import annotations

import pytest

from pilotage.config.located import Located, located, read_documents
from pilotage.config.problems import Problem


def read(text: str) -> Located:
    documents, problems = read_documents(text)
    assert not problems
    assert len(documents) == 1
    return documents[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0x1F", -31),
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("true", True),
        ("off", False),
        ("~", None),
        ("2026-01-01", "2026-01-01"),
        ("22:22", "22:22"),
        ("'5'", "5"),
        ("!!str 5", "5"),
    ],
)
def test_scalars_are_read_as_kubernetes_reads_them(text: str, value: object) -> None:
    read_value = read(f"x: {text}").plain()["x"]
    assert read_value == value
    assert type(read_value) is type(value)


def test_every_value_knows_the_line_of_its_key() -> None:
    root = read("a:\n  b:\n  - 1\n  - c: 2\n")
    assert root.line_of("a") == 1
    assert root.line_of("a.b") == 2
    assert root.line_of("a.b[0]") == 3
    assert root.line_of("a.b[1].c") == 4


def test_the_line_of_a_missing_field_is_that_of_its_nearest_owner() -> None:
    root = read("a:\n  b: 1\n")
    assert root.line_of("a.b.c.d") == 2
    assert root.line_of("a.x[3]") == 1
    assert root.line_of("z") == 1


def test_json_indented_by_tabs_is_read() -> None:
    assert read('{\n\t"a": [1,\n\t\t2]\n}').plain() == {"a": [1, 2]}


def test_a_key_that_is_there_twice_is_a_problem_with_both_lines() -> None:
    documents, problems = read_documents("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert problems == [Problem(4, "a.b", "is there twice (already in line 2)")]
    assert documents[0].plain() == {"a": {"b": 1, "c": 2}}


def test_aliases_and_merge_keys_are_followed() -> None:
    text = "base: &base {x: 1, w: 2}\nother: &other {w: 3, z: 4}\nboth:\n  <<: [*base, *other]\n  x: 5\nsame: *base\n"
    value = read(text).plain()
    assert value["both"] == {"x": 5, "w": 2, "z": 4}
    assert value["same"] == {"x": 1, "w": 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1", Problem(2, "", "is no valid YAML: ")),
        ("a:\n\t- 1", Problem(2, "", "is no valid YAML: ")),
        ("a: &a [*a]", Problem(0, "", "is nested too deeply, or contains itself by an alias")),
        ("? {a: 1}\n: 2", Problem(1, "", "a key must be a text")),
        ("a: !!int x", Problem(1, "a", '"x" is no int')),
        ("a:\n  - !!binary aGk=", Problem(2, "a[0]", "a binary has no place in JSON")),
        ("a: *nowhere", Problem(1, "", "is no valid YAML: ")),
        ("a: \x01", Problem(0, "", "is no valid YAML: ")),
        ("x:\n  <<: 1\n", Problem(2, "x", "<< needs a mapping")),
    ],
)
def test_what_makes_no_sense_is_a_problem_with_its_line(text: str, problem: Problem) -> None:
    _, problems = read_documents(text)
    assert [(found.line, found.path) for found in problems] == [(problem.line, problem.path)]
    assert problems[0].message.startswith(problem.message)


def test_aliases_within_aliases_do_not_grow_without_end() -> None:
    levels = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    documents, problems = read_documents("\n".join(levels))
    assert not documents
    assert len(problems) == 1


def test_empty_documents_are_left_out() -> None:
    documents, problems = read_documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n")
    assert [document.plain() for document in documents] == [{"a": 1}, {"b": 2}]
    assert [document.line for document in documents] == [3, 7]
    assert not problems


def test_plain_values_can_be_given_a_line() -> None:
    value = located({"a": [1, {"b": None}]}, 7)
    assert value.line_of("a[1].b") == 7
    assert value.plain() == {"a": [1, {"b": None}]}
    with pytest.raises(TypeError, match="set has no place"):
        located({"a": {1, 2}})
