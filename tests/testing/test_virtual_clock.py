"""Virtual time stands still, moves on command, and wakes sleepers in a fixed order."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.clock import Clock
from pilotage.testing.virtual_clock import NeverIdle, VirtualClock


async def nap(clock: Clock, seconds: float, name: str, log: list[tuple[str, float]]) -> None:
    await clock.sleep(seconds)
    log.append((name, clock.monotonic()))


async def test_sleepers_wake_in_order_of_time_and_then_of_going_to_sleep() -> None:
    clock, log = VirtualClock(), []
    async with asyncio.TaskGroup() as group:
        for name, seconds in [("c", 3), ("a", 1), ("b1", 2), ("b2", 2), ("late", 9)]:
            group.create_task(nap(clock, seconds, name, log))
        await clock.advance(5)
        assert log == [("a", 1), ("b1", 2), ("b2", 2), ("c", 3)]
        assert clock.monotonic() == 5
        await clock.advance(4)
    assert log[-1] == ("late", 9)


async def test_time_stands_still_while_no_one_advances_it() -> None:
    clock, log = VirtualClock(), []
    async with asyncio.TaskGroup() as group:
        sleeper = group.create_task(nap(clock, 0.001, "a", log))
        for _ in range(50):
            await clock.sleep(0)
        await clock.settle()
        assert log == [] and clock.monotonic() == 0 and clock.sleepers == 1
        sleeper.cancel()


async def test_wall_time_and_monotonic_time_move_together() -> None:
    clock = VirtualClock(start=1000.0)
    await clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (1002.5, 2.5)
    with pytest.raises(ValueError, match="back"):
        await clock.advance(-1)


async def test_sleep_begun_on_the_way_is_served_within_the_same_advance() -> None:
    clock, log = VirtualClock(), []

    async def tick() -> None:
        for number in range(3):
            await nap(clock, 1, str(number), log)

    async with asyncio.TaskGroup() as group:
        group.create_task(tick())
        await clock.advance(10)
    assert log == [("0", 1), ("1", 2), ("2", 3)]


async def test_woken_task_and_all_it_wakes_run_before_the_next_sleeper() -> None:
    clock, log, bell = VirtualClock(), [], asyncio.Event()

    async def ring() -> None:
        await clock.sleep(1)
        bell.set()

    async def listen() -> None:
        await bell.wait()
        for _ in range(5):
            await clock.sleep(0)
        log.append(("heard", clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(ring())
        group.create_task(listen())
        group.create_task(nap(clock, 1.0001, "next", log))
        await clock.advance(2)
    assert log == [("heard", 1), ("next", 1.0001)]


async def test_run_until_idle_returns_the_time_it_took_and_ignores_cancelled_sleepers() -> None:
    clock, log = VirtualClock(), []
    async with asyncio.TaskGroup() as group:
        group.create_task(nap(clock, 7, "a", log))
        cancelled = group.create_task(nap(clock, 100, "never", log))
        await clock.settle()
        cancelled.cancel()
        assert await clock.run_until_idle() == 7
    assert log == [("a", 7)] and clock.sleepers == 0


async def test_run_until_idle_says_when_it_would_never_end() -> None:
    clock = VirtualClock()

    async def heartbeat() -> None:
        while True:
            await clock.sleep(10)

    async with asyncio.TaskGroup() as group:
        beat = group.create_task(heartbeat())
        with pytest.raises(NeverIdle):
            await clock.run_until_idle(limit_seconds=95)
        assert clock.monotonic() == 95
        beat.cancel()
