"""What `end` finishes, and what it does not wait for."""

from __future__ import annotations

import asyncio

from pilotage.api import CycleState, Permit, Plugin, Wait
from pilotage.cycle.scheduler import LONGEST_END_SECONDS
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import LiveScheduler


class Patience(Plugin, Permit):
    """Holds every pod back for an hour."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait:
        return Wait(3600.0)


async def test_pods_that_wait_for_permission_are_not_waited_for() -> None:
    world = LiveScheduler([Patience])
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.scheduler.run())
        await world.put(node("a"), pod("p"))
        assert len(list(world.scheduler.waiting_pods)) == 1
        world.scheduler.end()
        await world.clock.advance(0.1)
        assert running.done() and world.node_of("p") == ""


async def test_end_of_an_idle_scheduler_comes_at_once() -> None:
    world = LiveScheduler()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.scheduler.run())
        await world.put(node("a"), pod("p"))
        world.scheduler.end()
        await world.clock.advance(0.1)
        assert running.done() and world.node_of("p") == "a"


async def test_calls_that_hang_are_given_up_in_the_end() -> None:
    world = LiveScheduler()
    world.api.status_latency = 1e6
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.scheduler.run())
        await world.put(node("a"), pod("p").requests(cpu=999))
        world.scheduler.end()
        await world.clock.advance(LONGEST_END_SECONDS - 1.0)
        assert not running.done()
        await world.clock.advance(2.0)
        assert running.done()
