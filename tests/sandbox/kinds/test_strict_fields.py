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


@pytest.mark.parametrize(
    ("version", "spec", "unknown"),
    [
        ("v1beta2", {"cohortName": "c", "preemption": {"withinClusterQueue": "Never"}}, []),
        ("v1beta2", {"cohrtName": "c", "preemption": {"within": 1}}, ["spec.cohrtName", "spec.preemption.within"]),
        ("v1beta2", {"cohort": "c"}, ["spec.cohort"]),
        ("v1beta1", {"cohort": "c", "admissionChecks": ["a"]}, []),
        ("v1beta1", {"cohortName": "c"}, ["spec.cohortName"]),
    ],
)
def test_kueues_kinds_are_known_in_both_versions(version: str, spec: dict[str, Any], unknown: list[str]) -> None:
    kind = builtin_registry().find("kueue.x-k8s.io", version, "clusterqueues")
    assert unknown_fields(kind, {"metadata": {"name": "q"}, "spec": spec}) == unknown


def test_the_pods_of_a_workload_may_have_any_field() -> None:
    kind = builtin_registry().find("kueue.x-k8s.io", "v1beta2", "workloads")
    template = {"spec": {"containers": [], "made": {"up": 1}}}
    assert unknown_fields(kind, {"spec": {"podSets": [{"template": template, "cout": 1}]}}) == ["spec.podSets[0].cout"]
