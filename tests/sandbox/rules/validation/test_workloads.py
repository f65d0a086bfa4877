"""Deployments and their relatives."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create, validate_update

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"},
}


def workload(kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": copy.deepcopy(TEMPLATE), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}


def messages(obj: dict[str, Any]) -> list[str]:
    return [str(error) for error in validate_create(obj["kind"], obj)]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_ordinary_workload_is_fine(kind: str) -> None:
    assert messages(workload(kind)) == []


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_selector_must_exist_and_match_the_template(kind: str) -> None:
    assert messages(workload(kind, selector=None)) == ["spec.selector: Required value"]
    (empty,) = messages(workload(kind, selector={}))
    assert empty.startswith("spec.selector: Invalid value: {}: empty selector is invalid for")
    assert messages(workload(kind, selector={"matchLabels": {"app": "y"}})) == [
        'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`'
    ]


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "app", "operator": "In", "values": ["x", "y"]}, True),
        ({"key": "app", "operator": "NotIn", "values": ["x"]}, False),
        ({"key": "app", "operator": "Exists"}, True),
        ({"key": "app", "operator": "DoesNotExist"}, False),
        ({"key": "other", "operator": "NotIn", "values": ["x"]}, True),
    ],
)
def test_selector_expressions_are_understood(expression: dict[str, Any], matches: bool) -> None:
    assert (messages(workload(selector={"matchExpressions": [expression]})) == []) is matches


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": -1}, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        ({"template": None}, "spec.template: Required value"),
        (
            {"strategy": {"type": "BlueGreen"}},
            'spec.strategy.type: Unsupported value: "BlueGreen": supported values: "Recreate", "RollingUpdate"',
        ),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
        ),
        (
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "a lot"}}},
            'spec.strategy.rollingUpdate.maxSurge: Invalid value: "a lot": '
            "a valid percent string must be a numeric string followed by an ending '%'",
        ),
        (
            {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
            "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
        ),
        (
            {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
        (
            {"template": {**TEMPLATE, "spec": {"containers": []}}},
            "spec.template.spec.containers: Required value",
        ),
    ],
)
def test_deployment(spec: dict[str, Any], expected: str) -> None:
    assert messages(workload(**spec)) == [expected]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_selector_is_immutable(kind: str) -> None:
    other = workload(kind, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})
    (error,) = validate_update(kind, workload(kind), other)
    assert (error.path, error.problem) == ("spec.selector", "field is immutable")
    assert validate_update(kind, workload(kind), workload(kind, replicas=5)) == []


def test_stateful_set_changes_only_what_rolls() -> None:
    old = workload("StatefulSet", serviceName="s")
    assert validate_update("StatefulSet", old, workload("StatefulSet", serviceName="s", replicas=3)) == []
    (error,) = validate_update("StatefulSet", old, workload("StatefulSet", serviceName="t"))
    assert str(error) == (
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
        "are forbidden"
    )


def test_replication_controller_selects_by_labels() -> None:
    def controller(selector: Any) -> dict[str, Any]:
        spec = {"selector": selector, "template": TEMPLATE}
        return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "r"}, "spec": spec}

    assert messages(controller({"app": "x"})) == []
    assert messages(controller(None)) == ["spec.selector: Required value"]
    assert [e.path for e in validate_create("ReplicationController", controller({"app": "y"}))] == [
        "spec.template.metadata.labels"
    ]
