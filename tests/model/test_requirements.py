"""Single requirements on labels, and the ones that Kubernetes would refuse."""

from __future__ import annotations

import pytest

from pilotage.model.requirements import Requirement, is_label_value, parse_int64

LABELS = {"zone": "a", "cores": "8", "word": "many", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("absent", "In", ("a",), False),
        ("empty", "In", ("",), True),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("a", "b"), False),
        ("absent", "NotIn", ("a",), True),
        ("zone", "Exists", (), True),
        ("absent", "Exists", (), False),
        ("absent", "DoesNotExist", (), True),
        ("zone", "DoesNotExist", (), False),
        ("cores", "Gt", ("7",), True),
        ("cores", "Gt", ("8",), False),
        ("cores", "Lt", ("9",), True),
        ("cores", "Lt", ("8",), False),
        ("word", "Gt", ("1",), False),
        ("absent", "Lt", ("1",), False),
    ],
)
def test_requirement_holds(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    requirement = Requirement(key, operator, values)
    assert requirement.problem() is None
    assert requirement.matches(LABELS) is expected


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("In", ()),
        ("NotIn", ()),
        ("NotIn", ("no label value!",)),
        ("NotIn", ("x" * 64,)),
        ("In", ("5", "no label value!")),
        ("Exists", ("a",)),
        ("DoesNotExist", ("a",)),
        ("Gt", ("1", "2")),
        ("Gt", ("-1",)),
        ("Gt", ("many",)),
        ("Lt", ()),
        ("Near", ("a",)),
    ],
)
def test_malformed_requirement_matches_nothing_and_says_why(operator: str, values: tuple[str, ...]) -> None:
    requirement = Requirement("key", operator, values)
    assert not requirement.matches({"key": "5"})
    assert not requirement.matches({})
    assert '"key"' in (requirement.problem() or "")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("8", 8), ("-8", -8), ("+8", 8), ("007", 7), (str(2**63 - 1), 2**63 - 1), (str(-(2**63)), -(2**63))],
        *[("", None), ("1_0", None), (" 1", None), ("1.0", None), ("８", None), (str(2**63), None)],
    ],
)
def test_parse_int64_reads_what_go_reads(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


@pytest.mark.parametrize("text", ["", "a", "A-b_c.9", "x" * 63])
def test_label_values(text: str) -> None:
    assert is_label_value(text)


@pytest.mark.parametrize("text", ["-a", "a-", "a b", "ä", "x" * 64, "a\n"])
def test_texts_that_are_no_label_value(text: str) -> None:
    assert not is_label_value(text)
