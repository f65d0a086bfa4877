from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.kinds.structural_schema import ObjectRules, apply_schema_defaults


def object_with(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "value", "defaulted"),
    [
        (object_with(a={"default": 1}), {}, {"a": 1}),
        (object_with(a={"default": 1}), {"a": 2}, {"a": 2}),
        (object_with(a={"default": 1}), {"a": None}, {"a": 1}),
        (object_with(a={"default": 1, "nullable": True}), {"a": None}, {"a": None}),
        (object_with(a=object_with(b={"default": 1})), {}, {}),
        (object_with(a={**object_with(b={"default": 1}), "default": {}}), {}, {"a": {"b": 1}}),
        (object_with(a={"items": object_with(b={"default": 1})}), {"a": [{}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 2}]}),
        ({"additionalProperties": object_with(b={"default": 1})}, {"x": {}}, {"x": {"b": 1}}),
    ],
)
def test_defaults_fill_what_is_absent(schema: dict[str, Any], value: Any, defaulted: Any) -> None:
    apply_schema_defaults(schema, value)
    assert value == defaulted


def test_a_default_is_not_shared_between_objects() -> None:
    schema = object_with(a={"default": {"b": []}})
    first: dict[str, Any] = {}
    apply_schema_defaults(schema, first)
    first["a"]["b"].append(1)
    second: dict[str, Any] = {}
    apply_schema_defaults(schema, second)
    assert second == {"a": {"b": []}}


@pytest.mark.parametrize(
    ("schema", "obj", "paths"),
    [
        (object_with(spec=object_with(n={"type": "integer"})), {"spec": {"n": "1"}}, ["spec.n"]),
        (object_with(spec=object_with(n={"type": "number"})), {"spec": {"n": 1}}, []),
        (object_with(spec={"type": "object", "required": ["n"]}), {"spec": {}}, ["spec.n"]),
        ({"type": "object", "required": ["metadata", "spec"]}, {}, ["spec"]),
        (object_with(n={"type": "integer", "minimum": 1, "maximum": 3}), {"n": 0}, ["n"]),
        (object_with(n={"type": "integer", "minimum": 1, "maximum": 3}), {"n": 4}, ["n"]),
        (object_with(n={"type": "integer", "minimum": 1, "maximum": 3}), {"n": 3}, []),
        (object_with(s={"type": "string", "enum": ["a", "b"]}), {"s": "c"}, ["s"]),
        (object_with(s={"type": "string", "pattern": "^a+$"}), {"s": "b"}, ["s"]),
        (object_with(s={"type": "string", "pattern": r"^\pL+$"}), {"s": "b"}, []),
        (object_with(s={"type": "string", "minLength": 2}), {"s": "b"}, ["s"]),
        (object_with(s={"type": "string", "maxLength": 2}), {"s": "bbb"}, ["s"]),
        (object_with(i={"x-kubernetes-int-or-string": True}), {"i": "50%"}, []),
        (object_with(i={"x-kubernetes-int-or-string": True}), {"i": []}, ["i"]),
        (object_with(a={"type": "array", "maxItems": 1, "items": {"type": "string"}}), {"a": ["x", 1]}, ["a", "a[1]"]),
        (object_with(a={"type": "string"}), {"a": None}, []),
        (object_with(b={"type": "boolean"}), {"b": True}, []),
        (object_with(n={"type": "integer"}), {"n": True}, ["n"]),
        (object_with(m={"additionalProperties": {"type": "string"}}), {"m": {"k": 1}}, ["m.k"]),
    ],
)
def test_what_the_schema_forbids_is_named_by_path(schema: dict[str, Any], obj: Any, paths: list[str]) -> None:
    assert [error.path for error in ObjectRules(schema).schema_errors(obj)] == paths


def test_what_an_update_leaves_as_it_was_is_not_judged_again() -> None:
    schema = {
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "maximum": 3},
                    "names": {"type": "array", "items": {"type": "string", "maxLength": 2}},
                },
            }
        }
    }
    stored = {"spec": {"size": 9, "names": ["long", "a"]}}
    assert {error.path for error in ObjectRules(schema).schema_errors(stored)} == {"spec.size", "spec.names[0]"}
    assert ObjectRules(schema).schema_errors({**stored, "status": {}}, stored) == []
    added = {"spec": {"size": 9, "names": ["a", "long", "longer"]}}
    assert [error.path for error in ObjectRules(schema).schema_errors(added, stored)] == ["spec.names[2]"]
    one = {"spec": {"size": 1}}
    assert [error.type for error in ObjectRules(schema).schema_errors({"spec": {"size": True}}, one)] == [
        "FieldValueTypeInvalid"
    ]


def test_a_pattern_that_backtracks_for_ever_takes_no_time() -> None:
    schema = object_with(name={"type": "string", "pattern": "^(a+)+$"}, odd={"type": "string", "pattern": "(?<!x)y"})
    found = ObjectRules(schema).schema_errors({"name": 200 * "a" + "!", "odd": "y"})
    assert [error.path for error in found] == ["name"], "and what is no pattern of RE2 is not judged"
