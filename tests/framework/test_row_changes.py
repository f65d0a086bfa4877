"""Which rows have to be looked at again."""

from __future__ import annotations

from pilotage.cluster.state import Cluster
from pilotage.framework.row_changes import RowChanges
from pilotage.testing import node, pod


def cluster_of(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.put_node(node(name).build())
    return cluster


def test_nothing_happened_nothing_to_look_at() -> None:
    cluster = cluster_of("a", "b")
    assert RowChanges(cluster.nodes, cluster.nominations).since_last() == []


def test_pods_nodes_and_promises_each_touch_their_row_once() -> None:
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


def test_a_promise_that_is_only_repeated_changes_nothing() -> None:
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
