"""Columns kept for equal pods, brought up to date row by row, are what a fresh evaluation would say, and rank alike."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator

import numpy as np
import pytest

from pilotage.api import (
    CycleState,
    Filter,
    Mask,
    NodeTable,
    NodeView,
    NormalizeScore,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Score,
    Scores,
    Sees,
    VectorFilter,
    VectorScore,
)
from pilotage.cluster.state import Cluster
from pilotage.framework.evaluation import Evaluator
from pilotage.framework.shared_columns import choose
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import profile_of

FULL = Reason("Full", "full")


class _Signed(Plugin):
    def sign(self, pod: Pod) -> Hashable:
        return ()


class ColumnFilter(_Signed, VectorFilter):
    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        yield nodes.pod_count > 2, FULL


class NodeFilter(_Signed, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return Reject(FULL) if node.requested("cpu") > 3000 else None


class ColumnScore(_Signed, VectorScore):
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return np.minimum(nodes.pod_count * 7, 100)


class ColumnScoreNormalized(_Signed, VectorScore, NormalizeScore):
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return nodes.requested("cpu")

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return scores * 100 // scores.max() if scores.max() else scores


class NodeScore(_Signed, Score):
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return min(node.requested("cpu") // 100, 100)


class NodeScoreNormalized(_Signed, Score, NormalizeScore):
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return node.requested("cpu") * 3

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return scores * 100 // scores.max() if scores.max() else scores


ZONE = "topology.kubernetes.io/zone"


class SteadyFilter(_Signed, Filter):
    """Looks at nothing but the Node object, as the next two do."""

    filter_sees = Sees.NODE

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return Reject(FULL) if node.labels[ZONE] == "b" else None


class SteadyScore(_Signed, Score):
    score_sees = Sees.NODE

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return {"a": 0, "c": 9, "d": 30}.get(node.labels[ZONE], 20)


class SteadyScoreNormalized(_Signed, Score, NormalizeScore):
    score_sees = Sees.NODE

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return ord(node.labels[ZONE])

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return scores * 100 // scores.max() if scores.max() else scores


class UnsignedScore(Plugin, VectorScore):
    """Looks at the pod's name, which nobody signs: asked for every pod."""

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return (nodes.requested("cpu") // 1000 + len(pod.name)) % 5


class UnsignedFilter(Plugin, VectorFilter):
    """Rejects nobody most of the time."""

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        if pod.name.endswith("3"):
            yield nodes.pod_count > 0, FULL


class StubbornFilter(Plugin, VectorFilter):
    """Asked for every pod, and rejects the same nodes most of the time."""

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        digit = "1" if pod.name.endswith("7") else "2"
        yield nodes.rows_of(frozenset(name for name in nodes.names if digit in name)), FULL


MIXES = [
    (ColumnFilter, NodeFilter, ColumnScore, NodeScore, ColumnScoreNormalized),
    (ColumnFilter, NodeScore),
    (NodeFilter, ColumnScore),
    (NodeFilter, NodeScore),
    (ColumnFilter, ColumnScoreNormalized),
    (NodeFilter, NodeScore, UnsignedScore),
    (ColumnFilter, NodeScoreNormalized, ColumnScore),
    (UnsignedScore, ColumnScoreNormalized),
    (NodeFilter, UnsignedFilter, UnsignedScore, ColumnScore),
    (StubbornFilter, NodeFilter, NodeScore),
    (StubbornFilter, ColumnFilter, ColumnScore, UnsignedScore),
    (StubbornFilter, NodeFilter, NodeScoreNormalized, ColumnScore),
    (SteadyFilter, NodeFilter, SteadyScore, NodeScore, ColumnScore),
    (SteadyFilter, ColumnFilter, SteadyScoreNormalized, NodeScore, SteadyScore),
]


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: "+".join(cls.__name__ for cls in mix))
@pytest.mark.parametrize("seed", range(3))
def test_refreshed_columns_equal_fresh_ones(mix: tuple[type[Plugin], ...], seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster()
    for number in range(40):
        cluster.put_node(node(f"n{number}").zone(rng.choice("abc")).build())
    kept = Evaluator(profile_of(*(cls() for cls in mix)), cluster.nodes, cluster.nominations)
    for step in range(60):
        for change in range(rng.choice((0, 1, 2, 9))):
            new = pod(f"p-{step}-{change}").requests(cpu=rng.choice(("100m", "1"))).node(f"n{rng.randrange(40)}")
            cluster.put_pod(new.build())
        if step % 10 == 0:
            # Moves to the end of the walk over the zones, which decides ties.
            cluster.put_node(node(f"n{rng.randrange(40)}").zone(rng.choice("abcd")).build())
        asked = pod(f"q-{step}").build()
        fresh = Evaluator(profile_of(*(cls() for cls in mix)), cluster.nodes, cluster.nominations)
        totals = fresh.totals(CycleState(), asked, None)
        assert kept.totals(CycleState(), asked, None).tolist() == totals.tolist()
        best = kept.best(CycleState(), asked, None)
        row = choose(totals, cluster.nodes)
        assert best == (None if row is None else (row, totals[row]))


class Asked(_Signed, Filter, Score):
    """Notes which nodes it is asked about."""

    filter_sees = score_sees = Sees.NODE

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        self.nodes.append(node.name)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        self.nodes.append(node.name)
        return 1


def test_who_sees_nodes_only_is_asked_again_when_a_node_changes_and_not_when_its_pods_do() -> None:
    asked, cluster = Asked(), Cluster()
    for number in range(40):
        cluster.put_node(node(f"n{number}").build())
    evaluator = Evaluator(profile_of(asked, NodeScore()), cluster.nodes, cluster.nominations)
    evaluator.best(CycleState(), pod("first").build(), None)
    asked.nodes.clear()
    cluster.put_pod(pod("p").node("n7").build())
    evaluator.best(CycleState(), pod("second").build(), None)
    assert asked.nodes == []
    cluster.put_node(node("n9").label("new", "label").build())
    evaluator.best(CycleState(), pod("third").build(), None)
    assert asked.nodes == ["n9", "n9"]
