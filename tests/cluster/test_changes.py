"""Which events the difference of two versions of an object means, and in which order."""

from __future__ import annotations

import pytest

from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.cluster.changes import node_events, pod_events
from pilotage.testing import NodeBuilder, PodBuilder, node, pod

N = node("n").label("l", "1").taint("t", "NoSchedule").condition("Ready", "True").annotation("a", "1")
P = pod("p").label("l", "1").requests(cpu="1", memory="1Gi").tolerate("t")


def node_actions(old: NodeBuilder, new: NodeBuilder) -> list[Action]:
    events = list(node_events(old.build(), new.build()))
    assert all(event.resource is Resource.NODE for event in events)
    return [event.action for event in events]


def pod_actions(old: PodBuilder, new: PodBuilder) -> list[Action]:
    events = pod_events(old.build(), new.build(), Resource.TARGET_POD)
    assert all(event.resource is Resource.TARGET_POD for event in events)
    return [event.action for event in events]


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (N, N.version(9), []),
        (N, N.status(conditions=[{"type": "Ready", "status": "True", "reason": "StillFine"}]), []),
        (N.unschedulable(), N, [Action.UPDATE_NODE_TAINT]),
        (N, N.unschedulable(), []),
        (N, N.cpu("8"), [Action.UPDATE_NODE_ALLOCATABLE]),
        (N, N.cpu("4000m"), []),
        (N, N.allocatable("example.com/gpu", 1), [Action.UPDATE_NODE_ALLOCATABLE]),
        (N, N.label("l", "2"), [Action.UPDATE_NODE_LABEL]),
        (N, N.taint("u", "NoExecute"), [Action.UPDATE_NODE_TAINT]),
        (N, N.condition("DiskPressure", "False"), [Action.UPDATE_NODE_CONDITION]),
        (N, N.annotation("a", "2"), [Action.UPDATE_NODE_ANNOTATION]),
        (N, N.status(declaredFeatures=["X"]), [Action.UPDATE_NODE_DECLARED_FEATURE]),
    ],
    ids=[
        "version only", "heartbeat", "uncordoned", "cordoned", "allocatable", "same amount written differently",
        "new resource", "label", "taint", "condition", "annotation", "feature",
    ],
)  # fmt: skip
def test_a_node_update_is_reported_precisely(old: NodeBuilder, new: NodeBuilder, actions: list[Action]) -> None:
    assert node_actions(old, new) == actions


def test_a_node_update_may_be_several_events_in_a_fixed_order() -> None:
    changed = (
        node("n").cpu("8").label("l", "2").taint("u", "NoSchedule").condition("Ready", "False").annotation("a", "2")
        .status(declaredFeatures=["X"])
    )  # fmt: skip
    assert node_actions(N.unschedulable(), changed) == [
        Action.UPDATE_NODE_TAINT,
        Action.UPDATE_NODE_ALLOCATABLE,
        Action.UPDATE_NODE_LABEL,
        Action.UPDATE_NODE_TAINT,
        Action.UPDATE_NODE_CONDITION,
        Action.UPDATE_NODE_ANNOTATION,
        Action.UPDATE_NODE_DECLARED_FEATURE,
    ]


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (P, P.version(9), [Action.UPDATE]),
        (P, P.phase("Running"), [Action.UPDATE]),
        (P, P.label("l", "2"), [Action.UPDATE_POD_LABEL]),
        (P, P.requests(cpu="500m"), [Action.UPDATE_POD_SCALE_DOWN]),
        (P, P.requests(cpu="2"), [Action.UPDATE_POD_SCALE_UP]),
        (P, P.requests(cpu="2", memory="1"), [Action.UPDATE_POD_SCALE_DOWN, Action.UPDATE_POD_SCALE_UP]),
        (P, P.requests({"example.com/gpu": 1}), [Action.UPDATE_POD_SCALE_UP]),
        (P.requests({"example.com/gpu": 1}), P, [Action.UPDATE_POD_SCALE_DOWN]),
        (P.gate("a"), P, [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED]),
        (P.gate("a").gate("b"), P.gate("a"), [Action.UPDATE]),
        (P, P.tolerate("u"), [Action.UPDATE_POD_TOLERATION]),
        (P, P.spec(tolerations=[{"key": "other", "operator": "Exists"}]), [Action.UPDATE]),
        (
            P,
            P.status(resourceClaimStatuses=[{"name": "c", "resourceClaimName": "p-c"}]),
            [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
        ),
        (
            P,
            P.status(extendedResourceClaimStatus={"resourceClaimName": "p-c"}),
            [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
        ),
    ],
    ids=[
        "version only", "phase", "label", "smaller", "larger", "smaller and larger", "resource more", "resource less",
        "last gate", "not the last gate", "toleration more", "as many tolerations", "claim", "extended resource claim",
    ],
)  # fmt: skip
def test_a_pod_update_is_reported_precisely(old: PodBuilder, new: PodBuilder, actions: list[Action]) -> None:
    assert pod_actions(old, new) == actions


def test_a_pod_update_may_be_several_events_in_a_fixed_order() -> None:
    changed = (
        P.label("l", "2")
        .requests(cpu="2", memory="1")
        .tolerate("u")
        .status(resourceClaimStatuses=[{"name": "c", "resourceClaimName": "p-c"}])
    )
    assert pod_actions(P.gate("a"), changed) == [
        Action.UPDATE_POD_LABEL,
        Action.UPDATE_POD_SCALE_DOWN,
        Action.UPDATE_POD_SCALE_UP,
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        Action.UPDATE_POD_TOLERATION,
        Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
    ]


def test_the_resource_says_whose_pod_it_was() -> None:
    (event,) = pod_events(P.build(), P.label("l", "2").build(), Resource.ASSIGNED_POD)
    assert event == ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL)
