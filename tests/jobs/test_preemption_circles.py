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
def test_a_release_gives_everybody_one_turn(seed: int) -> None:
    """The victims' queue owns a part of what they held and takes it back first. If the preemptor, for whom the rest is
    not enough, were looked at again as soon as others borrow the rest, it would preempt them again, and so on."""
    world = crowd(seed, submissions=120)
    assert {world.state(f"w{number:03}") for number in range(120)} == {"admitted", "pending", "finished"}
