"""Columns that plugins derive: kept between pods, and asked for again only where nodes have changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pilotage.api.table import NodeTable
from pilotage.cluster.node_rows import NodeRows, ViewRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import RowView
from pilotage.testing import node, pod


class Derivation:
    """CPU that is free, twice in two rows; notes about which nodes it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, nodes: NodeTable) -> NDArray[Any]:
        self.asked.append(list(nodes.names))
        return np.array([nodes.free("cpu"), nodes.free("cpu")])

    def newly_asked(self) -> list[str]:
        asked, self.asked = self.asked, []
        return [name for names in asked for name in names]


@pytest.fixture
def table() -> ClusterNodeTable:
    table = ClusterNodeTable()
    for number, name in enumerate("abcdefgh"):
        table.put_node(node(name).cpu(number + 1).build())
    return table


def test_only_nodes_that_have_changed_are_asked_about_again(table: ClusterNodeTable) -> None:
    derive = Derivation()
    assert table.derived("free", derive).tolist() == [[1000 * n for n in range(1, 9)]] * 2
    assert derive.newly_asked() == list("abcdefgh")
    table.add_pod("c", pod("p").requests(cpu="500m").build())
    assert table.derived("free", derive)[1].tolist() == [1000, 2000, 2500, 4000, 5000, 6000, 7000, 8000]
    assert derive.newly_asked() == ["c"]
    table.derived("free", derive)
    assert derive.newly_asked() == []


def test_a_node_that_goes_or_is_given_other_amounts_is_noticed(table: ClusterNodeTable) -> None:
    derive = Derivation()
    table.derived("free", derive)
    table.put_node(node("b").cpu(20).build())
    table.remove_node("a")
    assert dict(zip(table.names, table.derived("free", derive)[0].tolist(), strict=True)) == {
        "b": 20000, "c": 3000, "d": 4000, "e": 5000, "f": 6000, "g": 7000, "h": 8000
    }  # fmt: skip


def test_pods_that_are_imagined_away_are_not_counted_meanwhile(table: ClusterNodeTable) -> None:
    derive = Derivation()
    table.add_pod("c", pod("p").requests(cpu="500m").priority(1).build())
    table.derived("free", derive)
    with table.without_lower(5):
        assert table.derived("free", derive)[0][2] == 3000
    assert table.derived("free", derive)[0][2] == 2500


def test_tables_of_some_nodes_have_the_column_too(table: ClusterNodeTable) -> None:
    some = NodeRows(table, np.array([6, 1]))
    assert some.derived("free", Derivation()).tolist() == [[7000, 2000]] * 2
    imagined = ViewRows(table, 3, RowView(table, 3))
    assert imagined.derived("free", Derivation()).tolist() == [[4000]] * 2


def test_the_column_cannot_be_written(table: ClusterNodeTable) -> None:
    with pytest.raises(ValueError, match="read-only"):
        table.derived("free", Derivation())[0][0] = 1


def test_few_columns_are_kept(table: ClusterNodeTable) -> None:
    derive = Derivation()
    for number in range(100):
        table.derived(number, derive)
    derive.newly_asked()
    table.derived(99, derive)
    assert derive.newly_asked() == []
    table.derived(0, derive)
    assert derive.newly_asked() == list("abcdefgh")


@pytest.mark.parametrize("wrong", [5, np.zeros(3), np.zeros((8, 2))])
def test_an_answer_for_other_nodes_is_an_error(table: ClusterNodeTable, wrong: Any) -> None:
    with pytest.raises(ValueError, match="8 entries in its last axis"):
        table.derived("wrong", lambda nodes: wrong)
