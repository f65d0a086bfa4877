"""What may change in a pod's spec and what may not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_update

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(**spec: Any) -> dict[str, Any]:
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "nodeName": "n",
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": spec}


def changed(old: dict[str, Any], **spec: Any) -> list[str]:
    new = copy.deepcopy(old)
    new["spec"].update(spec)
    return [str(error) for error in validate_update("Pod", old, new)]


def test_nothing_changed() -> None:
    assert changed(pod()) == []


def test_status_and_labels_may_change_freely() -> None:
    new = pod()
    new["status"] = {"phase": "Running"}
    new["metadata"]["labels"] = {"a": "b"}
    assert validate_update("Pod", pod(), new) == []


def test_image_may_change_but_not_vanish() -> None:
    container = pod()["spec"]["containers"][0]
    assert changed(pod(), containers=[{**container, "image": "j"}]) == []
    assert changed(pod(), containers=[{**container, "image": ""}]) == ["spec.containers[0].image: Required value"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"nodeName": "m"}, "spec.nodeName"),
        ({"schedulerName": "x"}, "spec.schedulerName"),
        ({"nodeSelector": {"a": "b"}}, "spec.nodeSelector"),
        ({"unknownField": 1}, "spec.unknownField"),
        ({"containers": [{"name": "c", "image": "i", "resources": {}}]}, "spec.containers[0].resources"),
    ],
)
def test_other_fields_are_immutable(change: dict[str, Any], place: str) -> None:
    (message,) = changed(pod(), **change)
    assert message.startswith(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    )
    assert message.endswith(f"changed: {place}")


def test_containers_may_not_come_or_go() -> None:
    more = [*pod()["spec"]["containers"], {"name": "d", "image": "i"}]
    assert changed(pod(), containers=more) == [
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    ]


def test_tolerations_may_be_added_and_their_seconds_changed() -> None:
    (own,) = pod()["spec"]["tolerations"]
    assert changed(pod(), tolerations=[{**own, "tolerationSeconds": 5}, {"key": "b", "operator": "Exists"}]) == []
    assert changed(pod(), tolerations=[]) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]


@pytest.mark.parametrize(
    ("before", "now", "problem"),
    [
        (None, 5, None),
        (5, 3, None),
        (5, 7, "Invalid value: 7: must be less than or equal to previous value"),
        (5, None, "Invalid value: null: must not update from a positive integer to nil value"),
    ],
)
def test_deadline_may_only_come_closer(before: Any, now: Any, problem: str | None) -> None:
    expected = [f"spec.activeDeadlineSeconds: {problem}"] if problem else []
    assert changed(pod(activeDeadlineSeconds=before), activeDeadlineSeconds=now) == expected


def gated(**spec: Any) -> dict[str, Any]:
    return pod(nodeName="", schedulingGates=[{"name": "a"}, {"name": "b"}], **spec)


def test_gates_may_go_but_not_come() -> None:
    assert changed(gated(), schedulingGates=[{"name": "b"}]) == []
    assert changed(gated(), schedulingGates=[{"name": "b"}, {"name": "z"}]) == [
        "spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate 'z'"
    ]


def test_gated_pod_may_be_narrowed_by_node_selector() -> None:
    old = gated(nodeSelector={"a": "1"})
    assert changed(old, nodeSelector={"a": "1", "b": "2"}) == []
    assert changed(old, nodeSelector={"a": "2"}) == [
        'spec.nodeSelector: Invalid value: {"a":"2"}: only additions are allowed (no mutations or deletions)'
    ]


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}}


def test_gated_pod_may_be_narrowed_by_node_affinity() -> None:
    first, second = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}
    assert changed(gated(), affinity=affinity([first])) == []
    old = gated(affinity=affinity([first]))
    assert changed(old, affinity=affinity([first, second])) == []
    (message,) = changed(old, affinity=affinity([second]))
    assert "only additions are allowed (no mutations or deletions)" in message
    (message,) = changed(old, affinity=affinity([first], [second]))
    assert "no additions/deletions to non-empty NodeSelectorTerms list are allowed" in message
    (message,) = changed(old, affinity={**affinity([first]), "podAffinity": {}})
    assert message.endswith("changed: spec.affinity")


def test_spec_may_not_vanish() -> None:
    new = pod()
    del new["spec"]
    assert [error.path for error in validate_update("Pod", pod(), new)] == ["spec.containers", "spec.containers"]
