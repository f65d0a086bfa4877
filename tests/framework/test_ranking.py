"""Ties go to the node that kube-scheduler's heap would have at its root."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.shared_columns import INFEASIBLE, choose, heap_walk
from pilotage.rng import seeded
from pilotage.testing import node


def heap_root(scores: Sequence[int]) -> int:
    """Index of the element at the root after a binary max-heap was built bottom-up in place.

    Sift down from the last parent to the first. The right child is taken only if it is strictly better than the left
    one, and changes places with its parent only if it is strictly better than that.
    """
    heap = [(score, index) for index, score in enumerate(scores)]
    for start in reversed(range(len(heap) // 2)):
        parent = start
        while (child := 2 * parent + 1) < len(heap):
            right = child + 1
            if right < len(heap) and heap[right][0] > heap[child][0]:
                child = right
            if not heap[child][0] > heap[parent][0]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0][1]


def table_of(zones: Sequence[str]) -> ClusterNodeTable:
    table = ClusterNodeTable()
    for number, zone in enumerate(zones):
        table.put_node(node(f"n{number}").zone(zone).build())
    return table


def expected(table: ClusterNodeTable, totals: Sequence[int]) -> int | None:
    """The feasible nodes in walking order go into the heap."""
    feasible = [int(row) for row in table.order if totals[row] != INFEASIBLE]
    return feasible[heap_root([totals[row] for row in feasible])] if feasible else None


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_the_root_of_the_heap(seed: int) -> None:
    rng = seeded(seed)
    size = rng.randrange(1, 70)
    table = table_of([rng.choice("abc") for _ in range(size)])
    for _ in range(100):
        distinct = rng.choice([1, 2, 3, 50])
        share_rejected = rng.choice([0, 0.2, 0.9])
        totals = [INFEASIBLE if rng.random() < share_rejected else rng.randrange(distinct) for _ in range(size)]
        assert choose(np.array(totals), table) == expected(table, totals), totals


def test_the_simulation_knows_a_tie_that_is_not_first_come_first_served() -> None:
    """The best two are at 2 and 3; the heap has the left branch first."""
    assert heap_root([0, 0, 9, 9]) == 3
    assert choose(np.array([0, 0, 9, 9]), table_of("aaaa")) == 3


def test_the_first_node_wins_if_it_is_among_the_best() -> None:
    assert choose(np.array([5, 5, 5, 5]), table_of("aaaa")) == 0


def test_without_a_feasible_node_there_is_no_choice() -> None:
    assert choose(np.array([INFEASIBLE, INFEASIBLE]), table_of("aa")) is None
    assert choose(np.array([], dtype=np.int64), ClusterNodeTable()) is None


def test_a_total_of_nothing_is_feasible() -> None:
    assert choose(np.array([INFEASIBLE, 0]), table_of("aa")) == 1


def test_a_heap_is_walked_parents_first_and_left_before_right() -> None:
    assert np.argsort(heap_walk(7)).tolist() == [0, 1, 3, 4, 2, 5, 6]
