"""The scores of a column are those of its nodes one by one, also where a node claims more than there is on earth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.plugins.args import UtilizationShapePoint
from pilotage.plugins.resource_scoring import LeastAllocated, MostAllocated, RequestedToCapacityRatio, Strategy

LARGEST = 2**63 - 1
SHAPE = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
AMOUNTS = st.one_of(
    st.integers(0, 10**12), st.integers(LARGEST // 100 - 2, LARGEST // 100 + 2), st.integers(0, LARGEST)
)


@pytest.mark.parametrize("strategy", [LeastAllocated(), MostAllocated(), RequestedToCapacityRatio(SHAPE)])
@given(st.lists(st.tuples(AMOUNTS, AMOUNTS.filter(bool)), min_size=1, max_size=8))
def test_columns_and_single_nodes_agree(strategy: Strategy, nodes: list[tuple[int, int]]) -> None:
    requested, capacity = (np.array(column, dtype=np.int64) for column in zip(*nodes, strict=True))
    alone = [strategy.score(used, whole) for used, whole in nodes]
    assert strategy.score_all(requested, capacity).tolist() == alone
    assert all(0 <= score <= 100 for score in alone)


def test_a_node_with_an_exbibyte_is_scored_as_any_other() -> None:
    """Its score was -1, which rejected every pod that could go there."""
    capacity = np.array([LARGEST, 2**60, 1000], dtype=np.int64)
    assert LeastAllocated().score_all(np.array([100, 2**59, 250]), capacity).tolist() == [99, 50, 75]
