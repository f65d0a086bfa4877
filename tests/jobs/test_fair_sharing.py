"""Fair sharing: shares, weights, who goes first, who gives back."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pilotage.jobs.fair_sharing import MOST, NO_SHARE, share, weighted_share
from pilotage.jobs.quota import Quota, QuotaNode
from tests.jobs.world import World

CPU, GPU, SPOT = ("std", "cpu"), ("std", "gpu"), ("spot", "cpu")


def node(weight: float, **usage: int) -> QuotaNode:
    """2 cpu in each of two flavors and 1 gpu of its own; the cohort can lend 10 cpu and 5 gpu in all."""
    root = QuotaNode("ring", {}, is_queue=False)
    mine = QuotaNode("mine", {CPU: Quota(2), SPOT: Quota(2), GPU: Quota(1)}, is_queue=True, weight=weight)
    other = QuotaNode("other", {CPU: Quota(3), SPOT: Quota(3), GPU: Quota(4)}, is_queue=True)
    mine.attach(root)
    other.attach(root)
    root.total_up()
    pairs = {"cpu": CPU, "spot": SPOT, "gpu": GPU}
    mine.add({pairs[name]: amount for name, amount in usage.items()})
    return mine


@pytest.mark.parametrize(
    ("weight", "usage", "expected"),
    [
        (1, {"cpu": 2, "gpu": 1}, 0),
        (1, {"cpu": 3}, 100),
        (1, {"cpu": 3, "spot": 4}, 300),
        (1, {"cpu": 3, "spot": 1}, 100),
        (1, {"cpu": 3, "gpu": 3}, 400),
        (2, {"cpu": 3, "gpu": 3}, 200),
        (3, {"cpu": 3}, 34),
        (0, {"cpu": 2}, 0),
        (0, {"cpu": 3}, MOST),
    ],
)
def test_share(weight: float, usage: dict[str, int], expected: int) -> None:
    """What is above the own quota of each flavor counts, the largest resource decides, rounded up."""
    found = node(weight, **usage)
    assert weighted_share(found) == expected
    assert math.isinf(share(found).weighted) is (expected == MOST)


def test_a_queue_without_a_cohort_has_no_share() -> None:
    alone = QuotaNode("alone", {CPU: Quota(1)}, is_queue=True)
    alone.add({CPU: 5})
    assert share(alone) == NO_SHARE


def ring(strategies: list[str] | None = None, **weights: float) -> World:
    """`lender` has all the quota; the others borrow."""
    world = World(fairSharing={"preemptionStrategies": strategies} if strategies else {})
    world.queue("lender", "ring", std=8)
    for name in ("east", "west"):
        policy = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        world.queue(name, "ring", std=0, preemption=policy, fairWeight=weights.get(name, 1))
    return world


def fill(world: World, queue: str, *cpus: int, **fields: Any) -> None:
    for number, cpu in enumerate(cpus):
        world.submit(f"{queue}{number}", queue, cpu, **fields)
        world.stage.advance(1)


def holders(world: World, queue: str) -> int:
    return sum(
        1 for name, one in world.stage.workloads.items() if name.startswith(f"ns/{queue}") and one.status.admission
    )


def test_the_one_with_the_lower_share_goes_first_whatever_the_priority() -> None:
    world = ring()
    world.submit("rock", "lender", 8)
    fill(world, "east", 2, 2, 2, 2, priority=9)
    fill(world, "west", 2, 2, 2, 2)
    world.finish("rock")
    assert (holders(world, "east"), holders(world, "west")) == (2, 2)


def test_weights_divide_the_share() -> None:
    world = ring(west=3)
    world.submit("rock", "lender", 8)
    fill(world, "east", 2, 2, 2, 2)
    fill(world, "west", 2, 2, 2, 2)
    world.finish("rock")
    assert (holders(world, "east"), holders(world, "west")) == (1, 3)


def test_who_borrows_most_gives_back_until_shares_are_equal() -> None:
    world = ring()
    fill(world, "east", 2, 2, 2, 2)
    fill(world, "west", 2, 2, 2)
    assert (holders(world, "east"), holders(world, "west")) == (2, 2)
    reasons = {
        one.reason for w in world.stage.workloads.values() for one in w.status.conditions if one.type == "Preempted"
    }
    assert reasons == {"InCohortFairSharing"}


@pytest.mark.parametrize(
    ("strategies", "taken"),
    [
        (["LessThanOrEqualToFinalShare"], False),
        (["LessThanInitialShare"], True),
        (["LessThanOrEqualToFinalShare", "LessThanInitialShare"], True),
    ],
)
def test_the_second_rule_looks_at_the_share_before(strategies: list[str], taken: bool) -> None:
    """One large victim: without it its queue would have nothing, but with it it has more than the preemptor."""
    world = ring(strategies)
    fill(world, "east", 8)
    fill(world, "west", 2)
    assert bool(holders(world, "west")) is taken


def test_who_stays_inside_its_quota_takes_back_without_a_test_of_shares() -> None:
    world = World(fairSharing={})
    world.queue("lender", "ring", std=8, preemption={"reclaimWithinCohort": "Any"})
    world.queue("east", "ring", std=0, fairWeight=100)
    fill(world, "east", 8, priority=9)
    world.submit("mine", "lender", 8)
    assert world.state("mine") == "admitted"
    assert [one.reason for one in world.workload("east0").status.conditions if one.type == "Preempted"] == [
        "InCohortReclamation"
    ]


def test_shares_are_compared_where_the_ways_to_the_root_meet() -> None:
    """Of two departments the one that uses less goes first, though its team has more than each team of the other."""
    world = World(fairSharing={})
    world.add("cohort", "one", parent="all")
    world.add("cohort", "two", parent="all")
    world.queue("pool", "all", std=8)
    for name, cohort in (("a", "one"), ("b", "one"), ("c", "two")):
        world.queue(name, cohort, std=0)
    world.submit("rock", "pool", 2)
    for name, cpu in (("a0", 2), ("b0", 2), ("c0", 2)):
        world.submit(name, name[0], cpu)
    world.submit("a1", "a", 2, priority=9)
    world.submit("c1", "c", 2)
    world.finish("rock")
    assert [world.state(name) for name in ("a1", "c1")] == ["pending", "admitted"]


def test_the_status_says_the_share() -> None:
    world = ring()
    fill(world, "east", 2)
    status = world.engine.cluster_queue_status("east")
    assert status.fair_sharing is not None and status.fair_sharing.weighted_share == 250


def test_cohorts_are_reported_with_what_is_below_them() -> None:
    world = World()
    world.add("cohort", "all")
    world.add("cohort", "one", parent="all")
    for name, cohort, quota in (("a", "one", 2), ("b", "one", 3), ("c", "all", 4)):
        world.queue(name, cohort, std=quota)
    world.settle()
    found = {one.name: one for one in world.engine.cohorts()}
    assert {name: one.parent for name, one in found.items()} == {"all": "", "one": "all"}
    totals = {name: {quota.resource: quota.total for quota in one.quotas} for name, one in found.items()}
    assert totals == {"all": {"cpu": 9000}, "one": {"cpu": 5000}}
