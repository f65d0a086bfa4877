"""NodeResourcesBalancedAllocation: the change that a pod makes to the balance of cpu and memory."""

from __future__ import annotations

import pytest

from pilotage.plugins import NodeResourcesBalancedAllocation
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.default_plugins import default
from tests.plugins.one_plugin import OnePlugin

PLUGIN = default(NodeResourcesBalancedAllocation)
N = node("n").cpu("10").memory("10Gi")


def score(waiting: PodBuilder, *running: PodBuilder, on: NodeBuilder = N) -> int:
    return OnePlugin(PLUGIN, on, pods=[p.node("n") for p in running]).raw_scores(waiting)["n"]


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        (pod("p").requests(cpu="5", memory="5Gi"), 75),
        (pod("p").requests(cpu="10"), 50),
        (pod("p").requests(cpu="5"), 62),
        (pod("p").requests(cpu="1"), 72),
    ],
    ids=["keeps the balance", "as bad as can be", "worse", "a little worse"],
)
def test_on_an_empty_node_every_imbalance_is_a_loss(waiting: PodBuilder, expected: int) -> None:
    """b = int((1 - |cpu - memory| / 2) * 100), score = 50 + (50 + b(with) - b(without)) / 2."""
    assert score(waiting) == expected


def test_a_pod_that_restores_the_balance_is_welcome() -> None:
    assert score(pod("p").requests(memory="10Gi"), pod("a").requests(cpu="10")) == 100
    assert score(pod("p").requests(memory="4Gi"), pod("a").requests(cpu="4")) == 85


def test_usage_above_the_node_counts_as_full() -> None:
    assert score(pod("p").requests(cpu="100", memory="100Gi")) == 75


def test_defaults_for_missing_requests_do_not_count() -> None:
    assert score(pod("p").requests(cpu="1", memory="1Gi"), pod("a")) == 75


def test_with_one_resource_there_is_nothing_to_balance() -> None:
    assert score(pod("p").requests(cpu="5"), on=N.without("memory")) == 75


def test_a_pod_that_requests_neither_is_not_scored() -> None:
    world = OnePlugin(PLUGIN, N)
    assert world.skips_score(pod("p"))
    assert world.skips_score(pod("p").requests({"example.com/gpu": 1, "cpu": "0"}))
    assert not world.skips_score(pod("p").requests(memory="1"))


def test_the_signature_is_what_is_requested() -> None:
    assert PLUGIN.sign(pod("p").requests({"cpu": "1", "example.com/gpu": 1}).build()) == PLUGIN.sign(
        pod("q").requests(cpu="1").build()
    )
    assert PLUGIN.sign(pod("p").requests(cpu="1").build()) != PLUGIN.sign(pod("p").requests(memory="1").build())
