"""Preemption comes to an end: rules that are each reasonable must not chase each other for ever.

`World.settle` gives up when things keep changing although no time passes.
"""

from __future__ import annotations

import random

import pytest

from tests.jobs.world import World

GREEDY = {
    "withinClusterQueue": "LowerPriority",
    "reclaimWithinCohort": "LowerPriority",
    "borrowWithinCohort": {"policy": "LowerPriority"},
}


def test_what_is_left_of_its_victims_quota_is_not_for_those_behind_a_preemptor() -> None:
    """One victim comes back into what its queue owns, and the rest is not enough for the preemptor. If somebody behind
    it got the rest, the preemptor would have to preempt that one too."""
    world = World()
    for name, quota in (("home", 200), ("greedy", 170), ("guest", 0), ("lender", 30)):
        world.queue(name, "ring", std=quota, preemption=GREEDY)
    world.submit("rock", "home", 190, priority=100)
    world.submit("stone", "greedy", 178, priority=100)
    for name, queue, cpu, priority in (("v1", "home", 10, 20), ("v2", "home", 12, 20), ("y", "guest", 10, 30)):
        world.submit(name, queue, cpu, priority=priority)
    world.submit("behind", "guest", 12, priority=10)
    assert world.state("behind") == "pending"
    world.submit("preemptor", "greedy", 15, priority=50)
    found = {name: world.state(name) for name in ("preemptor", "v1", "v2", "y", "behind")}
    assert found == {"preemptor": "admitted", "v1": "admitted", "v2": "pending", "y": "pending", "behind": "pending"}
    assert world.workload("behind").status.scheduling_stats is None, "it was never admitted, only to be preempted"


def test_of_borrowers_the_one_for_whom_others_had_to_go_is_first() -> None:
    """With fair sharing the lower share goes first. If that took what a victim has left, the victim's queue would
    reclaim it for the victim, which would be preempted again."""
    world = World(fairSharing={})
    own = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"}
    world.queue("east", "ring", std=8)
    world.queue("west", "ring", std=3)
    world.queue("north", "ring", std=6, preemption=own)
    world.submit("rock", "east", 8)
    world.submit("victim", "north", 6, priority=1)
    world.submit("rival", "west", 4)
    world.submit("preemptor", "north", 9, priority=5)
    states = [world.state(name) for name in ("preemptor", "victim", "rival")]
    assert states == ["admitted", "pending", "pending"]


def crowd(seed: int, submissions: int) -> World:
    """Five queues of a cohort that get more work than they have quota for; now and then some of it ends."""
    rng, world = random.Random(seed), World()
    queues = [f"q{number}" for number in range(5)]
    for name in queues:
        world.queue(name, "ring", std=40, preemption=GREEDY)
    for number in range(submissions):
        priority = rng.choice((0, 10, 20, 50, 100))
        world.submit(f"w{number:03}", rng.choice(queues), rng.randint(1, 14), priority=priority)
        world.stage.advance(1)
        holders = [one for one in range(number + 1) if world.state(f"w{one:03}") == "admitted"]
        if number % 2 and holders:
            world.finish(f"w{rng.choice(holders):03}")
    return world


@pytest.mark.parametrize("seed", range(4))
def test_a_release_gives_everyone_one_turn(seed: int) -> None:
    """The victims' queue owns a part of what they held and takes it back first. If the preemptor, for whom the rest is
    not enough, were looked at again as soon as others borrow the rest, it would preempt them again, and so on."""
    world = crowd(seed, submissions=120)
    assert {world.state(f"w{number:03}") for number in range(120)} == {"admitted", "pending", "finished"}
