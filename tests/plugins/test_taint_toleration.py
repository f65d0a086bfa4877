"""TaintToleration: untolerated taints keep a pod away, or make a node less liked."""

from __future__ import annotations

import pytest

from pilotage.api import Action, Hint, Resource
from pilotage.plugins import TaintToleration
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.one_plugin import OnePlugin, hint

PLUGIN = TaintToleration()
TAINTED = node("n").taint("gpu", "NoSchedule", "a100")


@pytest.mark.parametrize(
    ("waiting", "is_rejected"),
    [
        (pod("p"), True),
        (pod("p").tolerate("gpu"), False),
        (pod("p").tolerate("gpu", "NoSchedule", "a100"), False),
        (pod("p").tolerate("gpu", "", "a100"), False),
        (pod("p").tolerate("gpu", "", "h100"), True),
        (pod("p").tolerate("gpu", "NoExecute"), True),
        (pod("p").tolerate("cpu"), True),
        (pod("p").tolerate(), False),
        (pod("p").tolerate("", "NoSchedule"), False),
        (pod("p").tolerate("", "NoSchedule", "a100"), False),
        (pod("p").spec(tolerations=[{"key": "gpu", "value": "a100"}]), False),
        (pod("p").spec(tolerations=[{"key": "gpu", "operator": "Gt", "value": "1"}]), True),
        (pod("p").tolerate("cpu").tolerate("gpu"), False),
    ],
    ids=[
        "none", "by key", "exact", "any effect", "other value", "other effect", "other key", "everything",
        "everything of the effect", "any key with the value", "Equal is the default", "unknown operator", "one of two",
    ],
)  # fmt: skip
def test_which_tolerations_open_a_tainted_node(waiting: PodBuilder, is_rejected: bool) -> None:
    assert OnePlugin(PLUGIN, TAINTED).rejected(waiting) == (["n"] if is_rejected else [])


@pytest.mark.parametrize(
    ("effect", "is_rejected"), [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False)]
)
def test_which_effects_keep_a_pod_away(effect: str, is_rejected: bool) -> None:
    assert OnePlugin(PLUGIN, node("n").taint("t", effect)).rejected(pod("p")) == (["n"] if is_rejected else [])


def test_one_untolerated_taint_among_many_is_enough_and_reported_without_its_name() -> None:
    world = OnePlugin(PLUGIN, TAINTED.taint("spot", "NoExecute"), node("free"))
    (reason,) = world.reasons(pod("p").tolerate("gpu"))["n"]
    assert reason.message == "node(s) had untolerated taint(s)" and reason.unresolvable
    assert world.rejected(pod("p").tolerate("gpu").tolerate("spot")) == []


def soft(name: str, count: int) -> NodeBuilder:
    builder = node(name).taint("hard", "NoSchedule")
    for number in range(count):
        builder = builder.taint(f"soft{number}", "PreferNoSchedule")
    return builder


def test_the_score_counts_untolerated_soft_taints() -> None:
    world = OnePlugin(PLUGIN, soft("none", 0), soft("one", 1), soft("three", 3))
    assert world.raw_scores(pod("p")) == {"none": 0, "one": 1, "three": 3}
    assert world.raw_scores(pod("p").tolerate("soft0")) == {"none": 0, "one": 0, "three": 2}
    assert world.raw_scores(pod("p").tolerate("soft0", "PreferNoSchedule")) == {"none": 0, "one": 0, "three": 2}


def test_a_toleration_of_another_effect_does_not_make_a_node_liked() -> None:
    assert OnePlugin(PLUGIN, soft("n", 1)).raw_scores(pod("p").tolerate("soft0", "NoSchedule")) == {"n": 1}


def test_the_fewer_soft_taints_the_better() -> None:
    world = OnePlugin(PLUGIN, soft("none", 0), soft("one", 1), soft("three", 3))
    assert world.normalized(pod("p")) == {"none": 100, "one": 67, "three": 0}


def test_without_soft_taints_all_nodes_are_best() -> None:
    assert OnePlugin(PLUGIN, node("a"), node("b")).normalized(pod("p")) == {"a": 100, "b": 100}


@pytest.mark.parametrize(
    ("action", "old", "new", "answer"),
    [
        (Action.ADD, None, node("n"), Hint.QUEUE),
        (Action.ADD, None, TAINTED, Hint.SKIP),
        (Action.UPDATE_NODE_TAINT, TAINTED, node("n"), Hint.QUEUE),
        (Action.UPDATE_NODE_TAINT, TAINTED, node("n").taint("gpu", "PreferNoSchedule"), Hint.QUEUE),
        (Action.UPDATE_NODE_TAINT, TAINTED, TAINTED.taint("x", "NoSchedule"), Hint.SKIP),
        (Action.UPDATE_NODE_TAINT, node("n"), node("n").taint("x", "PreferNoSchedule"), Hint.SKIP),
        (Action.UPDATE_NODE_ALLOCATABLE, TAINTED, node("n"), None),
    ],
    ids=["open node", "closed node", "opened", "softened", "still closed", "was open before", "other event"],
)
def test_a_node_helps_when_it_becomes_tolerated(
    action: Action, old: NodeBuilder | None, new: NodeBuilder, answer: Hint | None
) -> None:
    assert hint(PLUGIN, Resource.NODE, action, pod("p"), old, new) is answer


def test_a_node_that_the_pod_tolerated_all_along_does_not_help() -> None:
    waiting = pod("p").tolerate("gpu")
    assert hint(PLUGIN, Resource.NODE, Action.UPDATE_NODE_TAINT, waiting, TAINTED, node("n")) is Hint.SKIP


def test_a_new_toleration_always_helps() -> None:
    changed = pod("p").tolerate("x")
    assert hint(PLUGIN, Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, changed, pod("p"), changed) is Hint.QUEUE


def test_the_order_of_tolerations_does_not_matter_to_the_signature() -> None:
    one, other = pod("p").tolerate("a").tolerate("b"), pod("q").tolerate("b").tolerate("a")
    assert PLUGIN.sign(one.build()) == PLUGIN.sign(other.build())
    assert PLUGIN.sign(one.build()) != PLUGIN.sign(pod("p").tolerate("a").build())


def test_without_nodes_there_are_no_scores_although_taints_were_seen() -> None:
    world = OnePlugin(PLUGIN, soft("n", 2))
    world.cluster.remove_node("n")
    assert world.raw_scores(pod("p")) == {} and world.rejected(pod("p")) == []
