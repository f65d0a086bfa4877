"""Nodes with nominated pods: who has to keep away from them, and what is remembered of that."""

from __future__ import annotations

import numpy as np

from pilotage.api import CycleState, Filter, NodeView, Plugin, Reason, Reject, Rejection
from pilotage.cluster.state import Cluster
from pilotage.framework.dry_run import DryRun
from pilotage.framework.nominated_pods_filter import NominatedPodsFilter
from pilotage.model import Pod
from pilotage.testing import PodBuilder, node, pod
from tests.framework.scripted_plugins import FIT, cluster_of, profile_of


class Counting(Plugin, Filter):
    """Rejects nodes with a pod named "loner" on them; counts how often it is asked."""

    name = "Counting"

    def __init__(self) -> None:
        self.asked = 0

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        self.asked += 1
        is_taken = any(other.name == "loner" for other in node.pods)
        return Reject(Reason("Loner", "a loner is there")) if is_taken else None

    def sign(self, pod: Pod) -> str:
        return ""


class World:
    def __init__(self, *names: str) -> None:
        self.cluster: Cluster = cluster_of(*(node(name).cpu(4) for name in names))
        self.counting = Counting()
        profile = profile_of(FIT, self.counting)
        dry_run = DryRun(profile, self.cluster.nodes, self.cluster.nominations)
        self.contested = NominatedPodsFilter(profile, dry_run, self.cluster.nodes, self.cluster.nominations)

    def nominate(self, builder: PodBuilder, where: str) -> None:
        self.cluster.nominations.nominate(builder.build(), where)

    def rejected(self, builder: PodBuilder, *among: bool) -> dict[str, list[str]]:
        """By node, why the pod does not fit beside the pods that are nominated to it."""
        mask = np.array(among or [True] * len(self.cluster.nodes))
        verdicts = self.contested.verdicts(CycleState(), builder.build(), mask)
        if verdicts is None:
            return {}
        names = self.cluster.nodes.names
        return {
            names[row]: [reason.message for reason in rejected.rejection.reasons]
            for rejected, rows in verdicts.groups(mask)
            for row in np.flatnonzero(rows).tolist()
        }


def three(name: str, priority: int = 5) -> PodBuilder:
    return pod(name).requests(cpu=3).priority(priority)


NO_ROOM = ["Insufficient cpu"]


def test_no_one_is_nominated_anything() -> None:
    assert World("a").rejected(three("p")) == {}


def test_equal_and_more_important_pods_keep_others_away() -> None:
    world = World("a", "b", "c")
    for where, priority in (("a", 4), ("b", 5), ("c", 6)):
        world.nominate(three(f"first-{where}", priority), where)
    assert world.rejected(three("p")) == {"b": NO_ROOM, "c": NO_ROOM}


def test_a_pod_that_fits_beside_the_nominated_one_is_welcome() -> None:
    world = World("a")
    world.nominate(three("first"), "a")
    assert world.rejected(pod("small").requests(cpu=1).priority(5)) == {}


def test_only_the_rows_that_are_asked_for_are_judged() -> None:
    world = World("a", "b")
    world.nominate(three("first"), "a")
    world.nominate(three("second"), "b")
    assert world.rejected(three("p"), False, True) == {"b": NO_ROOM}
    assert world.counting.asked == 0, "the node is rejected before by another plugin"
    assert world.rejected(three("p"), True, False) == {"a": NO_ROOM}


def test_filters_see_the_nominated_pods() -> None:
    world = World("a", "b")
    world.nominate(pod("loner").priority(5), "b")
    assert world.rejected(pod("p").priority(5)) == {"b": ["a loner is there"]}


def test_verdicts_are_remembered_for_equal_pods_until_something_changes() -> None:
    world = World("a", "b")
    world.nominate(pod("loner").priority(5), "a")
    world.nominate(pod("loner").uid("u2").priority(5), "b")
    for name in ("p", "q", "r"):
        assert world.rejected(pod(name).priority(5)).keys() == {"a", "b"}
    assert world.counting.asked == 2
    world.cluster.put_pod(pod("more").node("b").build())
    assert world.rejected(pod("s").priority(5)).keys() == {"a", "b"}
    assert world.counting.asked == 3
    world.cluster.nominations.remove("u2")
    assert world.rejected(pod("t").priority(5)).keys() == {"a"}


def test_pods_of_another_priority_have_other_rivals() -> None:
    world = World("a")
    world.nominate(three("first"), "a")
    assert world.rejected(three("p", priority=5)) == {"a": NO_ROOM}
    assert world.rejected(three("p", priority=6)) == {}
    assert world.rejected(three("p", priority=5)) == {"a": NO_ROOM}


def test_a_pod_is_not_in_its_own_way_but_in_that_of_its_like() -> None:
    world = World("a")
    mine = three("mine")
    world.nominate(mine, "a")
    for _ in range(2):
        assert world.rejected(mine) == {}
        assert world.rejected(three("like-me")) == {"a": NO_ROOM}


def test_a_nominated_node_may_be_nominated_for_a_rival_too() -> None:
    world = World("a")
    mine = three("mine")
    world.nominate(mine, "a")
    world.nominate(three("rival", priority=9), "a")
    assert world.rejected(mine) == {"a": NO_ROOM}
    assert world.rejected(three("like-me")) == {"a": NO_ROOM}


def test_a_nomination_of_an_unknown_node_is_no_nomination_here() -> None:
    world = World("a")
    world.nominate(three("first"), "elsewhere")
    assert world.rejected(three("p")) == {}
