from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.strict_fields import unknown_fields

REGISTRY = builtin_registry()
WIDGET = ResourceType("example.com", "v1", "widgets", "widget", "Widget", True, is_custom=True)


@pytest.mark.parametrize(
    ("resource", "obj", "unknown"),
    [
        ("pods", {"spec": {"containers": [{"imag": "x"}]}}, ["spec.containers[0].imag"]),
        ("pods", {"sepc": {}, "metadata": {"lables": {}}}, ["sepc", "metadata.lables"]),
        ("deployments.apps", {"spec": {"replcas": 1, "template": {"spec": {"nodeNam": ""}}}},
         ["spec.replcas", "spec.template.spec.nodeNam"]),
        ("pods", {"metadata": {"labels": {"any": "thing"}}, "spec": {"nodeSelector": {"any": "thing"}}}, []),
        ("customresourcedefinitions.apiextensions.k8s.io",
         {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"anything": 1}}}]}}, []),
        ("pods", {"spec": "not an object"}, []),
    ],
)  # fmt: skip
def test_unknown_fields_of_built_in_kinds(resource: str, obj: dict[str, Any], unknown: list[str]) -> None:
    assert unknown_fields(REGISTRY.of(resource), obj) == unknown


@pytest.mark.parametrize(
    ("schema", "obj", "unknown"),
    [
        ({"properties": {"spec": {"properties": {"size": {}}}}}, {"spec": {"size": 1, "sice": 2}}, ["spec.sice"]),
        ({"properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}, {"spec": {"any": 1}}, []),
        ({"properties": {"m": {"additionalProperties": {"properties": {"a": {}}}}}}, {"m": {"k": {"b": 1}}}, ["m.k.b"]),
        ({"properties": {"l": {"items": {"properties": {"a": {}}}}}}, {"l": [{"a": 1}, {"b": 1}]}, ["l[1].b"]),
        (None, {"spec": {"any": 1}}, []),
    ],
)
def test_unknown_fields_of_custom_kinds(schema: Any, obj: dict[str, Any], unknown: list[str]) -> None:
    assert unknown_fields(replace(WIDGET, schema=schema), obj) == unknown


def test_the_report_has_an_end() -> None:
    assert len(unknown_fields(REGISTRY.of("pods"), {f"x{at}": 1 for at in range(100)})) == 20
