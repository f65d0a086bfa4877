"""What is kept for the pods of a class, and which rows have to be looked at again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from pilotage.api import CycleState, Filter, NodeView, Plugin
from pilotage.cluster.state import Cluster
from pilotage.framework.class_memory import ClassMemory, RowChanges
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import profile_of


def cluster_of(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.put_node(node(name).build())
    return cluster


def test_nothing_happened_nothing_to_look_at() -> None:
    cluster = cluster_of("a", "b")
    assert RowChanges(cluster.nodes, cluster.nominations).since_last() == []


def test_pods_nodes_and_nominations_each_touch_their_row_once() -> None:
    cluster = cluster_of("a", "b", "c", "d")
    changes = RowChanges(cluster.nodes, cluster.nominations)
    cluster.put_pod(pod("p").node("b").build())
    cluster.put_node(node("c").cpu(1).build())
    cluster.nominations.nominate(pod("q").build(), "a")
    cluster.nominations.nominate(pod("q").build(), "unknown")
    assert sorted(changes.since_last() or []) == [0, 1, 2]
    assert changes.since_last() == []


def test_a_newer_version_of_a_pod_counts_if_victims_are_chosen_by_it() -> None:
    cluster = cluster_of("a")
    running = pod("p").node("a")
    cluster.put_pod(running.build())
    changes = RowChanges(cluster.nodes, cluster.nominations)
    cluster.put_pod(running.version(2).build())
    assert changes.since_last() == []
    for newer in (running.status(startTime="2026-01-01T00:00:00Z"), running.terminating(), running.label("app", "web")):
        cluster.put_pod(newer.build())
        assert changes.since_last() == [0]


def test_a_nomination_that_is_only_repeated_changes_nothing() -> None:
    cluster = cluster_of("a")
    cluster.nominations.nominate(pod("q").build(), "a")
    changes = RowChanges(cluster.nodes, cluster.nominations)
    cluster.nominations.follow(pod("q").build(), pod("q").nominated("a").version(2).build())
    assert changes.since_last() == []
    assert cluster.nominations.on("a")[0].resource_version == "2"
    cluster.nominations.follow(pod("q").nominated("a").build(), pod("q").nominated("a").requests(cpu=1).build())
    assert changes.since_last() == [0]
    cluster.nominations.remove(pod("q").build().uid)
    assert changes.since_last() == [0]


def test_when_nodes_come_or_go_everything_is_to_be_looked_at() -> None:
    cluster = cluster_of("a", "b")
    changes = RowChanges(cluster.nodes, cluster.nominations)
    cluster.put_node(node("c").build())
    assert changes.since_last() is None
    assert changes.since_last() == []
    cluster.remove_node("a")
    assert changes.since_last() is None


class Signed(Plugin, Filter):
    """Looks at the pod's labels and one node."""

    version = 0

    def sign(self, pod: Pod) -> Hashable:
        return tuple(sorted(pod.labels.items()))

    def facts_version(self) -> Hashable:
        return Signed.version

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None:
        return None


class Unsigned(Plugin, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None:
        return None


def memory_of(cluster: Cluster, *plugins: type[Plugin], kept: int = 2) -> ClassMemory[list[str]]:
    """Contents are the story of themselves; rows that changed are written into it, and row 2 makes it void."""

    def update(story: list[str], pod: Pod, changed: Sequence[int]) -> bool:
        story += [f"{pod.name} row {row}" for row in changed]
        return 2 not in changed

    def make(pod: Pod) -> list[str]:
        return [f"made for {pod.name}"]

    profile = profile_of(*(cls() for cls in plugins))
    return ClassMemory(profile, cluster.nodes, cluster.nominations, make, update, kept)


def test_equal_pods_share_a_content_that_is_brought_up_to_date() -> None:
    cluster = cluster_of("a", "b", "c")
    memory = memory_of(cluster, Signed)
    assert memory.get(CycleState(), pod("p").build()) == ["made for p"]
    cluster.put_pod(pod("x").node("b").build())
    assert memory.get(CycleState(), pod("q").build()) == ["made for p", "q row 1"]
    assert memory.get(CycleState(), pod("q").label("app", "other").build()) == ["made for q"]
    assert memory.get(CycleState(), pod("q").priority(5).build()) == ["made for q"]


def test_content_that_cannot_be_relied_on_is_made_anew() -> None:
    cluster = cluster_of("a", "b", "c")
    memory = memory_of(cluster, Signed)
    memory.get(CycleState(), pod("p").build())
    cluster.put_pod(pod("x").node("c").build())
    assert memory.get(CycleState(), pod("q").build()) == ["made for q"], "update said so"
    Signed.version += 1
    assert memory.get(CycleState(), pod("r").build()) == ["made for r"], "a plugin knows other facts"
    cluster.put_node(node("d").build())
    assert memory.get(CycleState(), pod("s").build()) == ["made for s"], "there are other rows"


def test_the_class_that_was_met_longest_ago_is_forgotten() -> None:
    memory = memory_of(cluster_of("a"), Signed)
    first, second, third = (pod(name).label("app", name).build() for name in ("p", "q", "r"))
    kept = memory.get(CycleState(), first)
    memory.get(CycleState(), second)
    assert memory.get(CycleState(), first) is kept
    memory.get(CycleState(), third)
    assert memory.get(CycleState(), first) is kept
    assert memory.get(CycleState(), second) == ["made for q"]


def test_nothing_is_shared_if_a_filter_does_not_sign() -> None:
    memory = memory_of(cluster_of("a"), Signed, Unsigned)
    assert memory.get(CycleState(), pod("p").build()) is None
