"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

import pytest

from pilotage.api import Action, Hint, Resource
from pilotage.plugins import NodeUnschedulable
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.one_plugin import OnePlugin, hint

CORDON = "node.kubernetes.io/unschedulable"
PLUGIN = NodeUnschedulable()
WORLD = OnePlugin(PLUGIN, node("open"), node("closed").unschedulable())


@pytest.mark.parametrize(
    ("waiting", "rejected"),
    [
        (pod("p"), ["closed"]),
        (pod("p").tolerate("other"), ["closed"]),
        (pod("p").tolerate(CORDON, "NoExecute"), ["closed"]),
        (pod("p").tolerate(CORDON, "NoSchedule", "value"), ["closed"]),
        (pod("p").tolerate(CORDON, "NoSchedule"), []),
        (pod("p").tolerate(CORDON, "NoSchedule", ""), []),
        (pod("p").tolerate(CORDON), []),
        (pod("p").tolerate(), []),
    ],
    ids=["none", "other key", "other effect", "other value", "exact", "empty value", "any effect", "everything"],
)
def test_a_cordoned_node_is_open_to_pods_that_tolerate_it(waiting: PodBuilder, rejected: list[str]) -> None:
    assert WORLD.rejected(waiting) == rejected


def test_the_reason_is_beyond_preemption() -> None:
    (reason,) = WORLD.reasons(pod("p"))["closed"]
    assert reason.message == "node(s) were unschedulable" and reason.unresolvable


@pytest.mark.parametrize(
    ("action", "old", "new", "answer"),
    [
        (Action.ADD, None, node("n"), Hint.QUEUE),
        (Action.ADD, None, node("n").unschedulable(), Hint.SKIP),
        (Action.UPDATE_NODE_TAINT, node("n").unschedulable(), node("n"), Hint.QUEUE),
        (Action.UPDATE_NODE_TAINT, node("n"), node("n").unschedulable(), Hint.SKIP),
        (Action.UPDATE_NODE_TAINT, node("n"), node("n").taint("t", "NoSchedule"), Hint.SKIP),
        (Action.UPDATE_NODE_LABEL, node("n").unschedulable(), node("n"), None),
        (Action.DELETE, node("n").unschedulable(), None, None),
    ],
)
def test_a_node_helps_when_it_opens(
    action: Action, old: NodeBuilder | None, new: NodeBuilder | None, answer: Hint | None
) -> None:
    assert hint(PLUGIN, Resource.NODE, action, pod("p"), old, new) is answer


@pytest.mark.parametrize(("key", "answer"), [(CORDON, Hint.QUEUE), ("other", Hint.SKIP)])
def test_a_new_toleration_helps_if_it_is_the_right_one(key: str, answer: Hint) -> None:
    changed = pod("p").tolerate(key)
    found = hint(PLUGIN, Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, changed, pod("p"), changed)
    assert found is answer


def test_pods_that_differ_in_the_cordon_do_not_share_a_signature() -> None:
    assert PLUGIN.sign(pod("p").build()) == PLUGIN.sign(pod("q").tolerate("other").build())
    assert PLUGIN.sign(pod("p").build()) != PLUGIN.sign(pod("p").tolerate(CORDON).build())
