"""Resource scores by floats say what scores of single nodes say, and integers serve where floats would not be exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.cycle.handle import FrameworkHandle
from pilotage.plugins import NodeResourcesBalancedAllocation, NodeResourcesFit
from pilotage.plugins.args import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy
from pilotage.plugins.exact_amounts import exact_amounts, percent_of_exact
from pilotage.rng import seeded
from pilotage.testing import node, pod
from tests.default_plugins import default
from tests.plugins.one_plugin import OnePlugin

BOUND = 2**46
AMOUNTS = st.one_of(st.integers(0, 1000), st.integers(BOUND - 3, BOUND + 3), st.integers(0, 2**60))
EXACT = st.one_of(st.integers(1, 1000), st.integers(1, BOUND - 1))


@given(st.lists(st.tuples(EXACT, st.integers(0, 2**62)), min_size=1, max_size=8))
def test_percent_of_floats_is_that_of_integers(pairs: list[tuple[int, int]]) -> None:
    whole = [whole for whole, _ in pairs]
    part = [part % (whole + 1) for whole, part in pairs]
    found = percent_of_exact(np.array(part, dtype=np.float64), np.array(whole, dtype=np.float64))
    assert found.tolist() == [one * 100 // all_of_it for one, all_of_it in zip(part, whole, strict=True)]


@given(
    memory=st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=4),
    wanted=st.lists(AMOUNTS, min_size=2, max_size=3),
    kind=st.sampled_from(["LeastAllocated", "MostAllocated"]),
)
def test_columns_and_single_nodes_agree_whatever_nodes_claim(
    memory: list[tuple[int, int]], wanted: list[int], kind: str
) -> None:
    """`raw_scores` compares the two. A pod is placed in between, so that kept columns are brought up to date."""
    nodes = [node(f"n{place}").cpu(4).memory(str(offered)) for place, (offered, _) in enumerate(memory)]
    running = [
        pod(f"r{place}").requests(cpu="300m", memory=str(used)).node(f"n{place}")
        for place, (_, used) in enumerate(memory)
    ]
    weights = (ResourceSpec(name="cpu", weight=3), ResourceSpec(name="memory", weight=2))
    fit = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type=kind, resources=weights))
    handle = FrameworkHandle(Cluster(), SystemClock(), seeded(1))
    for plugin in (default(NodeResourcesBalancedAllocation), NodeResourcesFit(handle, fit)):
        asked = OnePlugin(plugin, *nodes, pods=running)
        for place, amount in enumerate(wanted):
            scores = asked.raw_scores(pod(f"p{place}").requests(cpu="700m", memory=str(amount)))
            assert all(0 <= score <= 100 for score in scores.values())
            asked.cluster.put_pod(pod(f"p{place}").requests(cpu="700m", memory=str(amount)).node("n0").build())


@pytest.mark.parametrize(
    ("memory", "wanted", "is_exact"),
    [("1Gi", 5, True), (str(BOUND - 1), 5, True), (str(BOUND), 5, False), ("0", 5, False), ("1Gi", BOUND, False)],
)
def test_what_is_not_exact_is_said_so(memory: str, wanted: int, is_exact: bool) -> None:
    nodes = OnePlugin(None, node("a").cpu(1).memory("1Gi"), node("b").cpu(1).memory(memory)).cluster.nodes
    assert (exact_amounts(nodes, ("cpu", "memory"), [1, wanted]) is not None) is is_exact


def test_a_node_that_can_be_told_again_is_told_exactly() -> None:
    """Its neighbours' balance must not be lost meanwhile."""
    asked = OnePlugin(default(NodeResourcesBalancedAllocation), node("a").cpu(1).memory("1Gi"), node("b").cpu(1))
    asked.cluster.put_pod(pod("r").requests(cpu="500m").node("a").build())
    before = asked.raw_scores(pod("p").requests(cpu="100m", memory="1Mi"))["a"]
    asked.cluster.put_node(node("b").cpu(1).memory("1Gi").build())
    assert asked.raw_scores(pod("p").requests(cpu="100m", memory="1Mi"))["a"] == before
