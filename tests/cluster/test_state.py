"""What the cluster believes: assume, confirm, forget; nodes that come late or leave early."""

from __future__ import annotations

import pytest

from pilotage.cluster.state import AssumeError, Cluster
from pilotage.testing import node, pod

P = pod("p").requests(cpu="1")


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.put_node(node("a").build())
    cluster.put_node(node("b").build())
    return cluster


def cpu(cluster: Cluster) -> dict[str, int]:
    cluster.check()
    return dict(zip(cluster.nodes.names, cluster.nodes.requested("cpu").tolist(), strict=True))


def test_an_assumed_pod_counts_at_once(cluster: Cluster) -> None:
    assumed = P.build().with_node("a")
    cluster.assume(assumed)
    assert cpu(cluster) == {"a": 1000, "b": 0}
    assert cluster.is_assumed(assumed.uid) and cluster.placed_pod(assumed.uid) is assumed


def test_a_pod_is_assumed_once(cluster: Cluster) -> None:
    cluster.assume(P.node("a").build())
    with pytest.raises(AssumeError, match=r"pod default/p \(uid-default-p\) is on node a already"):
        cluster.assume(P.node("b").build())
    assert cpu(cluster) == {"a": 1000, "b": 0}


def test_the_watch_event_confirms_an_assumed_pod(cluster: Cluster) -> None:
    assumed = P.node("a").build()
    cluster.assume(assumed)
    assert cluster.put_pod(P.node("a").version(2).build()) is assumed
    assert cpu(cluster) == {"a": 1000, "b": 0}
    assert not cluster.is_assumed(assumed.uid)


def test_the_real_node_wins_over_the_assumed_one(cluster: Cluster) -> None:
    cluster.assume(P.node("a").build())
    cluster.put_pod(P.node("b").build())
    assert cpu(cluster) == {"a": 0, "b": 1000} and not cluster.is_assumed(P.build().uid)


def test_forgetting_takes_an_assumption_back(cluster: Cluster) -> None:
    assumed = P.node("a").build()
    cluster.assume(assumed)
    assert cluster.forget(assumed.uid) is assumed
    assert cpu(cluster) == {"a": 0, "b": 0} and cluster.placed_count == 0
    assert cluster.forget(assumed.uid) is None


def test_a_confirmed_pod_cannot_be_forgotten(cluster: Cluster) -> None:
    cluster.assume(P.node("a").build())
    cluster.put_pod(P.node("a").build())
    assert cluster.forget(P.build().uid) is None
    assert cpu(cluster) == {"a": 1000, "b": 0}


def test_a_removed_pod_frees_its_place(cluster: Cluster) -> None:
    known = P.node("a").build()
    assert cluster.put_pod(known) is None
    assert cluster.remove_pod(known.uid) is known
    assert cluster.remove_pod(known.uid) is None
    assert cpu(cluster) == {"a": 0, "b": 0}


def test_an_update_changes_what_the_pod_counts_with_and_its_class(cluster: Cluster) -> None:
    cluster.put_pod(P.label("app", "x").node("a").build())
    cluster.put_pod(P.requests(cpu="2").label("app", "y").node("a").terminating().build())
    assert cpu(cluster) == {"a": 2000, "b": 0}
    (only,) = cluster.classes.where(lambda _: True)
    assert (dict(only.labels), only.terminating, only.on_node) == ({"app": "y"}, True, {"a": 1})


def test_pods_of_an_unknown_node_count_when_it_comes(cluster: Cluster) -> None:
    cluster.put_pod(P.node("late").build())
    assert cpu(cluster) == {"a": 0, "b": 0}
    cluster.put_pod(P.requests(cpu="2").node("late").build())
    cluster.put_node(node("late").build())
    assert cpu(cluster) == {"a": 0, "b": 0, "late": 2000}


def test_a_pod_of_an_unknown_node_can_go_before_the_node_comes(cluster: Cluster) -> None:
    cluster.put_pod(P.node("late").build())
    cluster.remove_pod(P.build().uid)
    cluster.put_node(node("late").build())
    assert cpu(cluster)["late"] == 0


def test_pods_of_a_node_that_comes_back_still_count(cluster: Cluster) -> None:
    cluster.put_pod(P.node("a").build())
    cluster.assume(P.uid("2").node("a").build())
    cluster.remove_node("a")
    assert cpu(cluster) == {"b": 0} and cluster.node("a") is None and cluster.node_view("a") is None
    cluster.forget("2")
    cluster.put_node(node("a").build())
    assert cpu(cluster) == {"b": 0, "a": 1000}


def test_removing_an_unknown_node_is_harmless(cluster: Cluster) -> None:
    cluster.remove_node("nobody")
    assert cpu(cluster) == {"a": 0, "b": 0}


def test_a_node_is_found_by_name(cluster: Cluster) -> None:
    cluster.put_pod(P.node("b").build())
    assert cluster.node("b").name == "b"
    assert [p.name for p in cluster.node_view("b").pods] == ["p"]


def test_other_objects_are_kept_by_kind_and_key(cluster: Cluster) -> None:
    first, second = pod("x").version(1).build(), pod("x").version(2).build()
    assert cluster.put_object("Thing", first) is None
    assert cluster.put_object("Thing", second) is first
    assert dict(cluster.objects("Thing")) == {"default/x": second}
    assert cluster.objects("Other") == {}
    assert cluster.remove_object("Thing", "default/x") is second
    assert cluster.remove_object("Thing", "default/x") is None
