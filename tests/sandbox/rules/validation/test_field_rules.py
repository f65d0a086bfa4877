"""Tables of rules: what absence counts as, what is required, in which order errors come."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create
from pilotage.sandbox.rules.validation.field_rules import at_least, each, fields, immutable, nothing, one_of, optional
from pilotage.sandbox.rules.validation.names import label

PORT = fields(("name!", label), ("number", at_least(1), 0), ("protocol", one_of("TCP", "UDP")))
TABLE = fields(
    ("size", at_least(0)),
    ("owner!", fields(("name", optional(label)))),
    ("ports!", each(PORT, unique="name")),
    ("", lambda value, path: at_least(0)(len(value) - 3, f"{path}.fields")),
)


def pod(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]} if spec is None else spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"size": 0, "owner": {}, "ports": [{"name": "a", "number": 1}]}, []),
        ({"size": None, "owner": {"name": ""}, "ports": [{"name": "a", "number": 1, "protocol": ""}]}, []),
        ({"size": -1, "owner": None, "ports": []}, ["x.size", "x.owner", "x.ports"]),
        ({}, ["x.owner", "x.ports", "x.fields"]),
        (
            {"owner": {}, "ports": [{"name": "a", "protocol": "IP"}, {"name": "a", "number": 1}]},
            ["x.ports[0].number", "x.ports[0].protocol", "x.ports[1].name", "x.fields"],
        ),
        (
            {"size": 1, "owner": {}, "ports": [{"number": 1}, {"number": 1}]},
            ["x.ports[0].name", "x.ports[1].name"],
        ),
    ],
)
def test_errors_come_in_the_order_of_the_rows(value: dict[str, Any], wrong: list[str]) -> None:
    assert [error.path for error in TABLE(value, "x")] == wrong


def test_the_fields_of_an_object_without_a_path_stand_at_their_names() -> None:
    (error,) = fields(("data!", nothing))({}, "")
    assert str(error) == "data: Required value"


@pytest.mark.parametrize("old", [{}, {"spec": None}, {"spec": "broken"}, {"spec": {"a": 1}}])
def test_what_is_immutable_may_not_differ_from_whatever_was_stored(old: dict[str, Any]) -> None:
    assert immutable("spec.a")(old, old) == []
    (error,) = immutable("spec.a")(old, {"spec": {"a": 2}})
    assert str(error) == "spec.a: Invalid value: 2: field is immutable"


def test_null_is_the_same_as_absent() -> None:
    assert validate_create("Pod", pod(labels=None, annotations=None, ownerReferences=None)) == []


def test_unknown_fields_pass() -> None:
    assert validate_create("Pod", pod({"containers": [{"name": "c", "image": "i", "zz": 1}], "future": {}})) == []
