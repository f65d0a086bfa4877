"""What `end` finishes, and what it does not wait for."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.api import CycleState, Permit, Plugin, Wait
from pilotage.cycle.scheduling_loop import LONGEST_END_SECONDS
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


async def test_an_orderly_end_writes_every_event_and_status_that_was_decided() -> None:
    """Also those that are held back while pods wait for their turn, and those of bindings that end last."""
    world = LiveScheduler()
    world.api.latency = world.api.status_latency = 2.0
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.scheduler.run())
        await world.put(node("a").cpu(64).pods(500))
        small, large = [f"small-{i}" for i in range(40)], [f"large-{i}" for i in range(40)]
        world.api.create_pod(*(pod(name).requests(cpu="100m") for name in small))
        world.api.create_pod(*(pod(name).requests(cpu=999) for name in large))
        await world.clock.settle()
        assert world.api.bindings == [] and len(world.api.events) < 80
        world.scheduler.end()
        await world.clock.advance(LONGEST_END_SECONDS)
        assert running.done()
    assert all(world.node_of(name) == "a" and world.notes(name)[0][0] == "Scheduled" for name in small)
    assert all(world.condition(name)[1] == "Unschedulable" for name in large)
    assert all(world.notes(name)[0][0] == "FailedScheduling" for name in large)


async def test_what_a_scheduler_that_is_stopped_at_once_could_not_write_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = LiveScheduler()
    world.api.status_latency = 1e6
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.scheduler.run())
        await world.put(node("a"), pod("p").requests(cpu=999))
        world.scheduler.effects.recorder.catch_up(is_busy=True)
        world.scheduler.effects.recorder.record(pod("q").build(), "Normal", "Scheduled", "Binding", "held back")
        running.cancel()
        await world.clock.settle()
    assert "API calls were not finished: pod_status_patch=1 event=1" in caplog.text
