from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.bench.workload_queueing import queueing_objects
from pilotage.sandbox.kinds.kueue_schemas import kueue_schema
from pilotage.sandbox.kinds.schema_types import quick_check
from pilotage.sandbox.kinds.structural_schema import ObjectRules, _judge, apply_schema_defaults

NUMBERS = st.sampled_from([-(2**40), -1, 0, 0.5, 1, 1.0, 2, True, 2**31, 2**31 - 1, 2**63, -(2**63), 10**30])
TEXTS = st.sampled_from(["", "a", "b", "aa", "abc", "2026-11-18T20:00:00Z", "\N{SNOWMAN}", "5"])
NAMES = st.sampled_from(["a", "b", "c", "d e"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=12,
)


def keywords(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


BOUNDS = st.sampled_from([-1, 0, 0.5, 1, 2, 2**60, 10**30])
OF_NUMBERS = {
    "minimum": BOUNDS,
    "maximum": BOUNDS,
    "exclusiveMinimum": st.booleans(),
    "exclusiveMaximum": st.booleans(),
    "format": st.sampled_from(["int32", "int64", "date-time", "other"]),
}
SMALL = st.integers(0, 3)
OF_TEXTS = {"minLength": SMALL, "maxLength": SMALL, "pattern": st.sampled_from(["^a+$", "b", "(?<!x)y"])}
ANYWHERE = {"nullable": st.booleans(), "enum": st.lists(TEXTS | NUMBERS, max_size=3)}
KINDS = st.sampled_from(["string", "integer", "number", "boolean"])


def typed(kind: str, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return keywords(**optional, **ANYWHERE).map(lambda found: {"type": kind, **found})


LEAVES = (
    st.tuples(KINDS, keywords(**OF_NUMBERS, **OF_TEXTS, **ANYWHERE)).map(lambda two: {"type": two[0], **two[1]})
    | keywords(**OF_NUMBERS, **OF_TEXTS).map(lambda found: {"x-kubernetes-int-or-string": True, **found})
    | keywords(**OF_TEXTS, **ANYWHERE)
)
LIST_KIND = {
    "x-kubernetes-list-type": st.sampled_from(["atomic", "set", "map"]),
    "x-kubernetes-list-map-keys": st.lists(NAMES, max_size=2),
}
SCHEMAS = st.recursive(
    LEAVES,
    lambda below: (
        typed("array", items=below, minItems=SMALL, maxItems=SMALL, **LIST_KIND)
        | typed(
            "object",
            properties=st.dictionaries(NAMES, below, max_size=3),
            additionalProperties=below,
            required=st.lists(NAMES, max_size=2),
            minProperties=SMALL,
            maxProperties=SMALL,
        )
        | typed("object", properties=st.dictionaries(NAMES, below, max_size=3), required=st.lists(NAMES, max_size=2))
    ),
    max_leaves=6,
)


@given(schema=SCHEMAS, value=VALUES)
def test_what_passes_the_quick_check_has_no_errors(schema: dict[str, Any], value: Any) -> None:
    errors: list[Any] = []
    _judge(schema, value, "", None, errors)
    if quick_check(schema)(value):
        assert errors == []


LIST_OF_MAPS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"type": "integer", "minimum": 0, "format": "int32"}, [0, 7], [-1, 2**31, True, "1"]),
        ({"type": "integer", "minimum": 0.5, "maximum": 2.5}, [1, 2], [0, 3]),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, [1, 0.1], [0]),
        ({"type": "string", "pattern": "^a+$", "maxLength": 2}, ["a"], ["b", "aaa"]),
        ({"type": "string", "enum": ["x", "y"]}, ["x"], ["z"]),
        ({"type": "string", "format": "date-time"}, ["2026-11-18T20:00:00Z"], ["yesterday"]),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"}, [1, "5%"], ["5", True]),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, [["a", "b"]], [["a", "a"]]),
        (LIST_OF_MAPS, [[{"name": "a"}, {"name": "b"}]], [[{"name": "a"}, {"name": "a"}], [{}], [None]]),
        ({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}, [{"a": "b"}], [{"a": 1}]),
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"x-kubernetes-preserve-unknown-fields": True}, [{"anything": []}], []),
    ],
)
def test_valid_values_pass_and_others_do_not(schema: dict[str, Any], valid: list[Any], invalid: list[Any]) -> None:
    is_valid = quick_check(schema)
    assert [value for value in valid if not is_valid(value)] == []
    assert [value for value in invalid if is_valid(value)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "maxLength": -1}}},
        {"properties": {"a": {"type": "string", "maxLength": "none"}}},
        {"properties": {'a"\\': {"type": "string"}}},
        {"properties": {f"field{at}": {"type": "string"} for at in range(10_000)}},
    ],
)
def test_of_a_schema_that_makes_no_types_every_object_is_doubtful(schema: dict[str, Any]) -> None:
    assert not quick_check({"type": "object", **schema})({})


def test_objects_of_queueing_pass_quickly() -> None:
    """Or every write of theirs would be judged in the slow way."""
    doubtful = []
    for obj in queueing_objects():
        schema = kueue_schema(obj["kind"])
        plain: dict[str, Any] = msgspec.to_builtins(obj)
        apply_schema_defaults(schema, plain)
        if not ObjectRules(schema)._is_valid(plain, {}):
            doubtful.append(obj["kind"])
    assert doubtful == []
