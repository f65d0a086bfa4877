"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes to nodes that declare it."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import Action, Hint, Resource
from pilotage.api.results import SKIP
from pilotage.plugins import NodeDeclaredFeatures
from pilotage.plugins.node_declared_features import required_features
from pilotage.testing import NodeBuilder, node, pod
from tests.plugins.handle import with_handle
from tests.plugins.one_plugin import hint

RESTART = "RestartAllContainersOnContainerExits"
USERNS = "UserNamespacesHostNetworkSupport"
MOUNTS = "VolumeBindMountOptions"

NEEDS_USERNS = pod("p").spec(hostNetwork=True, hostUsers=False)


def declaring(name: str, *features: str) -> NodeBuilder:
    return node(name).status(declaredFeatures=list(features))


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", **fields}


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({}, set()),
        ({"containers": [container(restartPolicyRules=[{"action": "RestartAllContainers"}])]}, {RESTART}),
        ({"containers": [container(restartPolicyRules=[{"action": "Restart"}])]}, set()),
        ({"initContainers": [container(restartPolicyRules=[{"action": "RestartAllContainers"}])]}, {RESTART}),
        ({"hostNetwork": True, "hostUsers": False}, {USERNS}),
        ({"hostNetwork": True}, set()),
        ({"hostNetwork": True, "hostUsers": True}, set()),
        ({"containers": [container(volumeMounts=[{"name": "v", "bindMountOptions": ["noexec"]}])]}, {MOUNTS}),
        ({"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/x"}])]}, set()),
    ],
)
def test_which_features_a_pod_requires(spec: dict[str, Any], features: set[str]) -> None:
    assert required_features(pod("p").spec(**spec).build().spec) == features


def test_node_that_lacks_a_feature_is_rejected_for_good() -> None:
    world = with_handle(NodeDeclaredFeatures, declaring("old", RESTART), declaring("new", RESTART, USERNS))
    reasons = world.reasons(NEEDS_USERNS)
    assert [reason.message for reason in reasons["old"]] == ["node(s) didn't match Pod's required features"]
    assert reasons["old"][0].unresolvable and reasons["new"] == []


def test_all_required_features_must_be_there_and_are_reported_once() -> None:
    both = NEEDS_USERNS.spec(containers=[container(restartPolicyRules=[{"action": "RestartAllContainers"}])])
    world = with_handle(
        NodeDeclaredFeatures, declaring("none"), declaring("one", USERNS), declaring("two", USERNS, RESTART)
    )
    assert {name: len(reasons) for name, reasons in world.reasons(both).items()} == {"none": 1, "one": 1, "two": 0}


def test_pod_that_requires_nothing_skips() -> None:
    world = with_handle(NodeDeclaredFeatures, declaring("n"))
    assert world.pre_filter(pod("p")) is SKIP
    assert world.pre_filter(NEEDS_USERNS) is None


def test_change_of_a_node_is_seen() -> None:
    world = with_handle(NodeDeclaredFeatures, declaring("n"))
    assert world.rejected(NEEDS_USERNS) == ["n"]
    world.cluster.put_node(declaring("n", USERNS).build())
    assert world.rejected(NEEDS_USERNS) == []
    world.cluster.put_node(declaring("n").build())
    assert world.rejected(NEEDS_USERNS) == ["n"]


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (None, declaring("n"), Hint.QUEUE),
        (declaring("n"), declaring("n", USERNS), Hint.QUEUE),
        (declaring("n", USERNS), declaring("n", USERNS), Hint.SKIP),
    ],
    ids=["added", "changed", "same"],
)
def test_which_node_events_help(old: NodeBuilder | None, new: NodeBuilder, answer: Hint) -> None:
    plugin = with_handle(NodeDeclaredFeatures, declaring("n")).plugin
    action = Action.ADD if old is None else Action.UPDATE_NODE_DECLARED_FEATURE
    assert hint(plugin, Resource.NODE, action, NEEDS_USERNS, old, new) is answer
