"""What lower priorities take, kept in columns; and nodes, rows and tables without them."""

from __future__ import annotations

import numpy as np
import pytest

from pilotage.cluster.lower_priority import WithoutLowerPriority
from pilotage.cluster.node_rows import NodeRows, ViewRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import ImaginedNode, RowView, ThinnedNode
from pilotage.testing import PodBuilder, node, pod


def a_pod(name: str, where: str, priority: int, **requests: str) -> PodBuilder:
    return pod(name).requests(**requests).priority(priority).node(where)


PODS = [
    a_pod("low", "a", 1, cpu="1"),
    a_pod("middle", "a", 5, cpu="500m", memory="1Gi"),
    a_pod("high", "a", 10, cpu="250m"),
    a_pod("other", "b", 1, cpu="2"),
]


def table_of(*pods: PodBuilder) -> ClusterNodeTable:
    table = ClusterNodeTable()
    for name in ("a", "b"):
        table.put_node(node(name).cpu(4).build())
    for builder in pods:
        built = builder.build()
        table.add_pod(built.node_name, built)
    return table


def cpu_below(table: ClusterNodeTable, priority: int) -> list[int]:
    found = np.broadcast_to(table.below(priority).requested("cpu", len(table)), len(table))
    return [int(amount) for amount in found]


@pytest.mark.parametrize(
    ("priority", "cpu", "count"),
    [(1, [0, 0], [0, 0]), (5, [1000, 2000], [1, 1]), (10, [1500, 2000], [2, 1]), (11, [1750, 2000], [3, 1])],
)
def test_pods_of_lower_priority_are_summed_up(priority: int, cpu: list[int], count: list[int]) -> None:
    table = table_of(*PODS)
    assert cpu_below(table, priority) == cpu
    assert table.below(priority).count.values(2).tolist() == count


def test_the_sums_follow_pods_that_come_and_go() -> None:
    table = table_of(*PODS)
    assert cpu_below(table, 5) == [1000, 2000]
    table.add_pod("b", a_pod("more", "b", 1, cpu="1", memory="2Gi").build())
    table.remove_pod("a", PODS[0].build())
    table.add_pod("a", a_pod("equal", "a", 5, cpu="1").build())
    assert cpu_below(table, 5) == [0, 3000]
    table.check()


def test_the_sums_follow_nodes_that_come_and_go() -> None:
    table = table_of(*PODS)
    table.below(5)
    table.remove_node("a")
    assert cpu_below(table, 5) == [2000]
    for number in range(100):
        table.put_node(node(f"new-{number}").build())
    table.add_pod("new-99", a_pod("late", "new-99", 1, cpu="1", memory="1Gi").build())
    assert cpu_below(table, 5)[-1] == 1000
    table.check()


def test_only_the_priorities_last_asked_for_are_kept() -> None:
    table = table_of(*PODS)
    for priority in range(50):
        table.below(priority)
    table.remove_pod("a", PODS[0].build())
    assert cpu_below(table, 5) == [0, 2000]
    table.check()


def test_a_table_without_lower_priorities() -> None:
    table = table_of(*PODS)
    without = WithoutLowerPriority(table, table.below(10))
    assert without.requested("cpu").tolist() == [250, 0]
    assert without.free("cpu").tolist() == [3750, 4000]
    assert without.requested("memory").tolist() == [0, 0]
    assert without.requested("example.com/gpu").tolist() == [0, 0]
    assert without.pod_count.tolist() == [1, 0]
    bare = table_of(PODS[2])
    for resource in ("cpu", "memory"):
        assert without.non_zero_requested(resource).tolist() == bare.non_zero_requested(resource).tolist()
    assert NodeRows(without, np.array([1, 0])).free("cpu").tolist() == [4000, 3750]
    assert (len(without), list(without.names), without.node(1).name) == (2, ["a", "b"], "b")


def test_a_node_without_lower_priorities() -> None:
    table, bare = table_of(*PODS), table_of(PODS[2])
    thinned, wanted = ThinnedNode(table, 0, table.below(10)), RowView(bare, 0)
    assert [p.name for p in thinned.pods] == ["high"]
    assert thinned.pod_count == wanted.pod_count
    for resource in ("cpu", "memory", "example.com/gpu"):
        assert thinned.requested(resource) == wanted.requested(resource)
        assert thinned.non_zero_requested(resource) == wanted.non_zero_requested(resource)
        assert thinned.allocatable(resource) == wanted.allocatable(resource)


def test_an_imagined_node_is_the_node_with_other_pods() -> None:
    table = table_of(*PODS)
    low, middle, high, other = (builder.build() for builder in PODS)
    imagined = ImaginedNode(RowView(table, 0))
    imagined.remove(low)
    imagined.add(other)
    imagined.remove(high)
    imagined.add(high)
    imagined.add(low)
    imagined.remove(low)
    wanted = RowView(table_of(PODS[1], PODS[2], a_pod("other", "a", 1, cpu="2")), 0)
    assert {p.name for p in imagined.pods} == {middle.name, high.name, other.name}
    assert imagined.pod_count == 3
    for resource in ("cpu", "memory", "example.com/gpu"):
        assert imagined.requested(resource) == wanted.requested(resource)
        assert imagined.non_zero_requested(resource) == wanted.non_zero_requested(resource)
    assert RowView(table, 0).pod_count == 3, "nothing but the imagined node has changed"


def test_what_is_imagined_on_an_imagined_node_stays_there() -> None:
    table = table_of(*PODS)
    outer = ImaginedNode(RowView(table, 0))
    outer.remove(PODS[0].build())
    inner = ImaginedNode(outer)
    inner.add(PODS[3].build())
    assert (inner.requested("cpu"), outer.requested("cpu")) == (2750, 750)
    assert (inner.pod_count, outer.pod_count) == (3, 2)


def test_an_imagined_node_as_a_table_of_one_row() -> None:
    table = table_of(*PODS)
    imagined = ImaginedNode(RowView(table, 1))
    imagined.remove(PODS[3].build())
    rows = ViewRows(table, 1, imagined)
    assert (len(rows), list(rows.names), rows.node(0).name) == (1, ["b"], "b")
    assert rows.free("cpu").tolist() == [4000] and rows.pod_count.tolist() == [0]
    assert rows.non_zero_requested("memory").tolist() == [0]
    assert rows.labels("kubernetes.io/hostname")[0].shape == (1,)
    assert rows.rows_of(frozenset(["a"])).tolist() == [False]
    assert rows.pick(np.array([7, 8])).tolist() == [8]
