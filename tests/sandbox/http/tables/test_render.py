"""The Table as a whole, and columns that a CustomResourceDefinition asks for."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.http.tables import render_table
from pilotage.sandbox.http.tables.custom import find_all

NOW = 1_000_000_000.0
OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "t", "creationTimestamp": "2001-09-09T01:41:40Z", "labels": {"a.b/c": "label"}},
    "spec": {"size": 3, "ratio": 0.5, "on": True, "parts": [{"id": "x"}, {"id": "y"}], "map": {"k": [1]}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Late", "status": "False"}]},
}


def column(path: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": "C", "type": kind, "jsonPath": path, **more}


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("Metadata", {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJECT["metadata"]}),
        ("Object", OBJECT),
        ("None", None),
    ],
)
def test_rows_include_what_is_asked_for(include: Any, expected: Any) -> None:
    table = render_table("Thing", [OBJECT], NOW, include=include)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["rows"][0].get("object") == expected
    assert table["rows"][0]["cells"] == ["t", "5m"]


def test_empty_list_still_has_columns() -> None:
    table = render_table("Deployment", [], NOW)
    assert table["rows"] == []
    assert [one["name"] for one in table["columnDefinitions"]][:2] == ["Name", "Ready"]


def test_definitions_are_complete() -> None:
    definitions = render_table("Pod", [], NOW)["columnDefinitions"]
    assert definitions[0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "Name of the object, unique within its namespace.",
        "priority": 0,
    }
    assert all(set(one) == {"name", "type", "format", "description", "priority"} for one in definitions)


def test_custom_columns_are_defined_as_asked() -> None:
    asked = column(".spec.size", "integer", description="How big", priority=1, format="int32")
    definitions = render_table("Thing", [], NOW, columns=[asked])["columnDefinitions"]
    assert definitions[1] == {
        "name": "C",
        "type": "integer",
        "format": "int32",
        "description": "How big",
        "priority": 1,
    }


@pytest.mark.parametrize(
    ("asked", "cell"),
    [
        (column(".spec.size", "integer"), 3),
        (column(".spec.size"), "3"),
        (column(".spec.ratio", "number"), 0.5),
        (column(".spec.on", "boolean"), True),
        (column(".spec.on"), "true"),
        (column(".spec.on", "integer"), None),
        (column(".spec.map"), '{"k":[1]}'),
        (column(".metadata.creationTimestamp", "date"), "5m"),
        (column(".spec.nothing"), None),
        (column(".status.conditions[?(@.type=='Ready')].status"), "True"),
        (column('.status.conditions[?(@.type=="Late")].status'), "False"),
        (column(".spec.parts[1].id"), "y"),
        (column(".spec.parts[-1].id"), "y"),
        (column(".spec.parts[9].id"), None),
        (column(".spec.parts[*].id"), "x"),
        (column(r".metadata.labels.a\.b/c"), "label"),
        (column(".metadata.labels['a.b/c']"), "label"),
        (column("{.spec.size}"), "3"),
        (column("..broken[["), None),
        ({"name": "C"}, '{"apiVersion"'),
    ],
)
def test_custom_cell(asked: dict[str, Any], cell: Any) -> None:
    shown = render_table("Thing", [OBJECT], NOW, columns=[asked])["rows"][0]["cells"][1]
    if cell == '{"apiVersion"':
        assert shown.startswith(cell)
    else:
        assert shown == cell
        assert type(shown) is type(cell)


def test_find_all_returns_every_hit() -> None:
    assert find_all(".spec.parts[*].id", OBJECT) == ["x", "y"]
