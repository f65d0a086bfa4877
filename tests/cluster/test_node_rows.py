"""A table of some rows answers like the whole table, row by row, in the order that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pilotage.api.table import NodeTable as Table
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import RowView
from pilotage.testing import node, pod

ROWS = [3, 0, 2]


@pytest.fixture
def table() -> ClusterNodeTable:
    table = ClusterNodeTable()
    for number, name in enumerate("abcd"):
        built = node(name).cpu(number + 1).label("n", str(number % 2)).taint(f"t{number // 2}", "NoSchedule")
        table.put_node((built.unschedulable() if number == 2 else built).build())
        for extra in range(number):
            table.add_pod(name, pod(f"{name}-{extra}").requests(cpu="100m", memory="1Gi").build())
    return table


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.allocatable("cpu"),
        lambda table: table.requested("cpu"),
        lambda table: table.free("cpu"),
        lambda table: table.non_zero_requested("memory"),
        lambda table: table.pod_count,
        lambda table: table.unschedulable,
        lambda table: table.labels("n")[0],
        lambda table: table.taint_sets()[0],
        lambda table: table.rows_of(frozenset(["a", "d"])),
        lambda table: np.array(table.names),
        lambda table: table.pick(np.array([5, 6, 7, 8])),
    ],
    ids=[
        "allocatable",
        "requested",
        "free",
        "scored",
        "pods",
        "cordoned",
        "labels",
        "taints",
        "names",
        "own names",
        "other",
    ],
)
def test_rows_are_picked_from_the_whole(table: ClusterNodeTable, ask: Callable[[Table], Any]) -> None:
    assert ask(NodeRows(table, np.array(ROWS))).tolist() == ask(table)[ROWS].tolist()


def test_rows_are_numbered_anew(table: ClusterNodeTable) -> None:
    some = NodeRows(table, np.array(ROWS))
    assert len(some) == 3 and some.node(0).name == "d"
    assert some.everywhere(True).tolist() == [True, True, True]
    assert some.labels("n")[1] == table.labels("n")[1]


def test_the_view_of_one_node_shows_its_row(table: ClusterNodeTable) -> None:
    view = RowView(table, 2)
    assert (view.name, view.unschedulable, view.labels["n"]) == ("c", True, "0")
    assert (view.allocatable("cpu"), view.requested("cpu"), view.requested("nothing")) == (3000, 200, 0)
    assert [taint.key for taint in view.taints] == ["t1"]
    assert [p.name for p in view.pods] == ["c-0", "c-1"] and view.node.name == "c"
