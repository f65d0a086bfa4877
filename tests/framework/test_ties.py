"""Which of several equally good nodes is taken, by each of the rules."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pilotage.api import CycleState
from pilotage.framework.evaluation import Evaluator
from pilotage.framework.node_sampling import NodeSampling
from pilotage.framework.shared_columns import INFEASIBLE, Ties, choose
from pilotage.framework.ties import OrderedTies, RandomTies
from pilotage.rng import seeded
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import FIT, cluster_of, profile_of

NODES = 7


class Choices:
    """What an evaluator takes, time after time, on nodes that are all the same."""

    def __init__(self, ties: Ties) -> None:
        self.cluster = cluster_of(*(node(f"n{number}") for number in range(NODES)))
        walk = NodeSampling(self.cluster.nodes, ties=ties)
        self._evaluator = Evaluator(profile_of(FIT), self.cluster.nodes, self.cluster.nominations, walk)

    def take(self) -> str:
        best = self._evaluator.best(CycleState(), pod("p").build(), None)
        assert best is not None
        return self.cluster.nodes.names[best.row]


def test_by_chance_each_is_equally_likely() -> None:
    choices = Choices(RandomTies(seeded(3)))
    taken = Counter(choices.take() for _ in range(700))
    assert len(taken) == NODES and min(taken.values()) > 60


def test_by_an_order_it_is_always_the_same_one_and_the_seed_decides_which() -> None:
    choices = Choices(OrderedTies(seeded(3)))
    assert len({choices.take() for _ in range(20)}) == 1
    assert len({Choices(OrderedTies(seeded(seed))).take() for seed in range(40)}) == NODES


def test_a_node_that_comes_later_finds_its_place_and_moves_no_other() -> None:
    choices = Choices(OrderedTies(seeded(3)))
    before = choices.take()
    later = {before}
    for number in range(30):
        choices.cluster.put_node(node(f"later-{number}").build())
        later.add(choices.take())
    others = {f"n{number}" for number in range(NODES)} - {before}
    assert not later & others and len(later) > 1


@pytest.mark.parametrize("ties", [RandomTies(seeded(1)), OrderedTies(seeded(1))], ids=["random", "first"])
def test_a_worse_or_refused_node_is_never_taken(ties: Ties) -> None:
    nodes = cluster_of(*(node(f"n{number}") for number in range(4))).nodes
    totals = np.array([5, INFEASIBLE, 5, 4])
    assert {choose(totals, nodes, None, ties) for _ in range(50)} <= {0, 2}
    assert choose(np.array([INFEASIBLE, 0, INFEASIBLE, INFEASIBLE]), nodes, None, ties) == 1
    assert choose(np.array([INFEASIBLE] * 4), nodes, None, ties) is None
