"""Dry runs: pods imagined on a node, or away from it, change the verdict on that node and nothing else."""

from __future__ import annotations

import pytest

from pilotage.testing import PodBuilder, node, pod
from tests.plugins.pod_topology_spread.spread_world import BLUE, SpreadWorld, blues, rule, spread

NODES = [node("a").zone("a").label("disk", "ssd"), node("b").zone("b").label("disk", "ssd"), node("c").zone("c")]
OTHER = pod("other").label("color", "blue")


@pytest.fixture
def world() -> SpreadWorld:
    return SpreadWorld(NODES, blues(a=1, b=1, c=1))


def test_one_more_pod_can_be_one_too_many(world: SpreadWorld) -> None:
    assert not world.imagine(spread(rule()), "a").is_rejected
    assert world.imagine(spread(rule()), "a").add(OTHER).is_rejected
    assert not world.imagine(spread(rule()), "a").add(OTHER).remove(OTHER).is_rejected


def test_one_pod_fewer_can_make_room() -> None:
    world = SpreadWorld(NODES, blues(a=2, b=1, c=1))
    first, second = blues(a=2)
    assert world.imagine(spread(rule()), "a").is_rejected
    assert not world.imagine(spread(rule()), "a").remove(first).is_rejected
    assert not world.imagine(spread(rule()), "a").remove(first).remove(second).is_rejected


def test_a_pod_fewer_here_lowers_the_emptiest_for_the_others(world: SpreadWorld) -> None:
    """The zone that lost a pod is the emptiest now, so the pod may go there but the zone may not get two."""
    imagined = world.imagine(spread(rule()), "a").remove(blues(a=1)[0])
    assert not imagined.is_rejected
    assert not imagined.add(OTHER).is_rejected
    assert imagined.add(OTHER.uid("another")).is_rejected


def test_a_dry_run_leaves_no_trace(world: SpreadWorld) -> None:
    imagined = world.imagine(spread(rule()), "a")
    assert imagined.add(OTHER).is_rejected
    assert not imagined.begin_again().is_rejected
    assert world.rejections(spread(rule())) == {}


@pytest.mark.parametrize(
    "other",
    [OTHER.namespace("elsewhere"), pod("other").label("color", "red"), pod("other")],
    ids=["other namespace", "other label", "no label"],
)
def test_other_pods_do_not_matter(world: SpreadWorld, other: PodBuilder) -> None:
    assert not world.imagine(spread(rule()), "a").add(other).is_rejected


def test_nodes_that_do_not_count_do_not_change(world: SpreadWorld) -> None:
    choosy = spread(rule(skew=1)).node_selector(disk="ssd")
    assert not world.imagine(choosy, "c").add(OTHER).is_rejected
    assert world.imagine(choosy, "a").add(OTHER).is_rejected
    wary = spread(rule(nodeTaintsPolicy="Honor"))
    tainted = SpreadWorld([*NODES[:2], node("c").zone("c").taint("gpu", "NoSchedule")], blues(a=1, b=1))
    assert not tainted.imagine(wary, "c").add(OTHER).add(OTHER.uid("x")).is_rejected


def test_an_empty_selector_counts_only_what_is_imagined() -> None:
    """As in kube-scheduler: such a selector counts no pod that is there, but every pod that is added."""
    world = SpreadWorld(NODES, blues(a=5))
    everyone = spread(rule(selector={}))
    assert not world.imagine(everyone, "a").is_rejected
    assert world.imagine(everyone, "a").add(pod("anybody")).is_rejected
    nobody = spread(rule(selector=None))
    assert not world.imagine(nobody, "a").add(OTHER).is_rejected


def test_a_pod_that_is_leaving_is_taken_away_although_it_was_not_counted() -> None:
    """As in kube-scheduler, which does not look whether a removed pod was terminating."""
    leaving = pod("leaving").label("color", "blue").terminating().node("a")
    world = SpreadWorld(NODES, [leaving, *blues(a=2, b=1, c=1)])
    assert world.imagine(spread(rule(selector=BLUE)), "a").is_rejected
    assert not world.imagine(spread(rule(selector=BLUE)), "a").remove(leaving).is_rejected
