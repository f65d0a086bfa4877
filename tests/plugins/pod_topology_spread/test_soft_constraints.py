"""Soft constraints: nodes in domains with fewer like pods score higher.

Raw scores are pods * ln(domains + 2) + (maxSkew - 1), summed over the constraints and rounded; few is good.
"""

from __future__ import annotations

import pytest

from pilotage.testing import node, pod
from tests.plugins.pod_topology_spread.spread_world import (
    HARD,
    HOSTNAME,
    SOFT,
    ZONE,
    SpreadWorld,
    blues,
    rule,
    spread,
)

ZONED = [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b"), node("c1").zone("c")]


def test_emptier_domains_score_higher() -> None:
    """ln(3 + 2) = 1.609: zones a, b, c have 2, 1, 0 pods."""
    world = SpreadWorld(ZONED, blues(a1=1, a2=1, b1=1))
    assert world.scores(spread(rule(when=SOFT))) == {"a1": (3, 0), "a2": (3, 0), "b1": (2, 33), "c1": (0, 100)}


def test_a_larger_skew_makes_differences_matter_less() -> None:
    world = SpreadWorld(ZONED, blues(a1=1, a2=1, b1=1))
    assert world.scores(spread(rule(when=SOFT, skew=5))) == {
        "a1": (7, 57),
        "a2": (7, 57),
        "b1": (6, 71),
        "c1": (4, 100),
    }


def test_without_like_pods_all_nodes_score_alike() -> None:
    assert SpreadWorld(ZONED).scores(spread(rule(when=SOFT))) == dict.fromkeys(["a1", "a2", "b1", "c1"], (0, 100))
    even = SpreadWorld(ZONED).scores(spread(rule(when=SOFT, skew=3)))
    assert even == dict.fromkeys(["a1", "a2", "b1", "c1"], (2, 100))


def test_the_hostname_counts_the_pods_of_the_node_itself() -> None:
    """ln(4 + 2) = 1.79."""
    world = SpreadWorld(ZONED, blues(a1=2, b1=1))
    scores = world.scores(spread(rule(key=HOSTNAME, when=SOFT)))
    assert scores == {"a1": (4, 0), "a2": (0, 100), "b1": (2, 50), "c1": (0, 100)}


def test_two_nodes_with_one_hostname_are_not_one_domain() -> None:
    twins = [node("x").label(HOSTNAME, "same"), node("y").label(HOSTNAME, "same")]
    scores = SpreadWorld(twins, blues(x=2)).scores(spread(rule(key=HOSTNAME, when=SOFT)))
    assert scores == {"x": (3, 0), "y": (0, 100)}


def test_several_constraints_add_up() -> None:
    """a1: 2 * ln(5) + 1 * ln(6) = 5.01; a2 the same; b1: ln(5) + ln(6) = 3.4."""
    world = SpreadWorld(ZONED, blues(a1=1, a2=1, b1=1))
    scores = world.scores(spread(rule(when=SOFT), rule(key=HOSTNAME, when=SOFT)))
    assert scores == {"a1": (5, 0), "a2": (5, 0), "b1": (3, 40), "c1": (0, 100)}


def test_domains_are_those_of_feasible_nodes_but_pods_of_all_nodes_count() -> None:
    """Only zones a and b are left: ln(2 + 2) = 1.386; the pods on the infeasible a1 still fill zone a."""
    world = SpreadWorld(ZONED, blues(a1=2, b1=1))
    scores = world.scores(spread(rule(when=SOFT)), feasible=["a2", "b1"])
    assert scores == {"a2": (3, 33), "b1": (1, 100)}


def test_nodes_that_lack_a_key_are_ignored() -> None:
    """They get nothing and are no part of the comparison; their pods do not count either."""
    nodes = [node("a").zone("a").label("rack", "1"), node("b").zone("b").label("rack", "2"), node("c").zone("c")]
    world = SpreadWorld(nodes, blues(a=2, c=9))
    scores = world.scores(spread(rule(when=SOFT, skew=2), rule(key="rack", when=SOFT)))
    assert scores == {"a": (7, 14), "b": (1, 100), "c": (0, 0)}


def test_where_all_feasible_nodes_lack_the_key_all_get_nothing() -> None:
    assert SpreadWorld([node("x"), node("y")]).scores(spread(rule(when=SOFT))) == {"x": (0, 0), "y": (0, 0)}


def test_ignored_nodes_do_not_count_as_hosts() -> None:
    """Two hosts are left: ln(2 + 2) = 1.386, so 3 pods make 4 (with ln(5) they would make 5)."""
    nodes = [node("a").zone("a"), node("b").zone("b"), node("x")]
    world = SpreadWorld(nodes, blues(a=3))
    scores = world.scores(spread(rule(key=HOSTNAME, when=SOFT), rule(when=SOFT, selector=None)))
    assert scores == {"a": (4, 0), "b": (0, 100), "x": (0, 0)}


def test_inclusion_policies_say_which_nodes_are_counted() -> None:
    nodes = [node("a").zone("a").label("disk", "ssd"), node("a2").zone("a"), node("b").zone("b").label("disk", "ssd")]
    world = SpreadWorld(nodes, blues(a2=2, b=1))
    choosy = spread(rule(when=SOFT)).node_selector(disk="ssd")
    assert world.scores(choosy, feasible=["a", "b"]) == {"a": (0, 100), "b": (1, 0)}
    careless = spread(rule(when=SOFT, nodeAffinityPolicy="Ignore")).node_selector(disk="ssd")
    assert world.scores(careless, feasible=["a", "b"]) == {"a": (3, 33), "b": (1, 100)}


def test_scoring_is_skipped_without_soft_constraints() -> None:
    world = SpreadWorld(ZONED)
    assert world.scores(pod("p")) is None
    assert world.scores(spread(rule(when=HARD))) is None


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
def test_scores_follow_the_pods(key: str) -> None:
    world = SpreadWorld(ZONED)
    waiting = spread(rule(key=key, when=SOFT))
    before = world.scores(waiting)
    (there,) = blues(b1=1)
    world.cluster.put_pod(there.build())
    assert (world.scores(waiting) or {})["b1"] == (2, 0)
    world.cluster.remove_pod(there.build().uid)
    assert world.scores(waiting) == before
