"""percentageOfNodesToScore: how many feasible nodes are enough, and where the next walk begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pilotage.api import Plugin
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.node_sampling import NodeSampling, number_to_find
from pilotage.framework.profile import Profile
from pilotage.plugins import PrioritySort
from pilotage.testing import node
from tests.framework.scripted_plugins import NullBinder, scripted


def table_of(count: int) -> ClusterNodeTable:
    table = ClusterNodeTable()
    for number in range(count):
        table.put_node(node(f"n{number}").build())
    return table


def profile_with(percentage: int, *plugins: Plugin) -> Profile:
    chosen = [PrioritySort(), NullBinder(), *plugins]
    return Profile("p", chosen, {p.plugin_name(): 1 for p in chosen}, None, percentage)


def scorer() -> Plugin:
    return scripted("S", score=1)


@pytest.mark.parametrize(
    ("nodes", "percentage", "enough"),
    [(99, 10, 99), (100, 10, 100), (1000, 10, 100), (1000, 30, 300), (5000, 5, 250), (333, 50, 166), (5000, 100, 5000)],
)
def test_a_percentage_but_at_least_a_hundred_nodes_are_enough(nodes: int, percentage: int, enough: int) -> None:
    assert number_to_find(nodes, percentage, has_scores=True) == enough


def test_without_scores_one_node_is_enough() -> None:
    assert number_to_find(5000, 0, has_scores=False) == 1


@pytest.mark.parametrize(("percentage", "walks"), [(0, False), (1, True), (99, True), (100, False)])
def test_all_nodes_are_looked_at_unless_a_percentage_is_asked_for(percentage: int, walks: bool) -> None:
    assert NodeSampling(table_of(1)).is_for(profile_with(percentage, scorer())) is walks


def find(walk: NodeSampling, profile: Profile, feasible: Any, allowed: Any = None) -> list[int]:
    return walk.find(profile, np.array(feasible, dtype=np.bool_), allowed).tolist()


def test_the_next_walk_begins_where_the_last_one_ended() -> None:
    walk, profile = NodeSampling(table_of(250)), profile_with(40, scorer())
    everywhere = [True] * 250
    assert find(walk, profile, everywhere) == list(range(100))
    assert find(walk, profile, everywhere) == list(range(100, 200))
    assert find(walk, profile, everywhere) == [*range(200, 250), *range(50)]


def test_rejected_nodes_are_walked_over() -> None:
    walk, profile = NodeSampling(table_of(250)), profile_with(40, scorer())
    assert find(walk, profile, [row % 2 == 1 for row in range(250)]) == list(range(1, 200, 2))
    assert walk.start == 200


def test_when_too_few_fit_all_are_found_and_the_start_stays() -> None:
    walk, profile = NodeSampling(table_of(250)), profile_with(40, scorer())
    walk.start = 7
    assert find(walk, profile, [row < 9 for row in range(250)]) == [7, 8, *range(7)]
    assert walk.start == 7


def test_without_scores_nodes_are_taken_in_turn() -> None:
    walk, profile = NodeSampling(table_of(3)), profile_with(0)
    assert [find(walk, profile, [True, False, True]) for _ in range(4)] == [[0], [2], [0], [2]]


def test_only_nodes_that_pre_filter_left_are_walked() -> None:
    walk, profile = NodeSampling(table_of(4)), profile_with(0)
    allowed = np.array([False, True, False, True])
    assert find(walk, profile, [True] * 4, allowed) == [1]
    assert find(walk, profile, [True] * 4, np.zeros(4, dtype=np.bool_)) == []
