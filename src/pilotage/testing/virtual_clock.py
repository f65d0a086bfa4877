"""A clock whose time moves only on request: a day of cluster life in milliseconds, the same every time.

Tasks that sleep on a `VirtualClock` are kept in a heap by (wake time, order of going to sleep). `advance` lets all
other tasks run until every one of them waits, then moves the time to the next sleeper and wakes that one alone, and so
on: sleepers wake one after the other in a fixed order, and each has had its say before the next one wakes.

"Every one waits" shows in the event loop's own queue of ready callbacks. Work that comes from outside of the loop
(threads, sockets, `loop.call_later`) is invisible to it: virtual time is for code that waits on the clock alone.
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import Any

from pilotage.clock import SystemClock

DEFAULT_START = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""

_TURNS_WITHOUT_END = 1_000_000
_TURNS_ON_AN_OPAQUE_LOOP = 100


class NeverIdle(Exception):
    """Something still sleeps after the time that `run_until_idle` was given."""


class VirtualClock:
    """A `pilotage.clock.Clock` that stands still until `advance` or `run_until_idle` moves it."""

    def __init__(self, start: float = DEFAULT_START) -> None:
        self._start = start
        self._now = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def time(self) -> float:
        return self._start + self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await _let_others_run_once()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move the time by `seconds`, waking everyone whose time comes on the way, in order."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        target = self._now + seconds
        await self.settle()
        while (wake_at := self._next_wake()) is not None and wake_at <= target:
            await self._wake_next()
        self._now = target
        await self.settle()

    def step(self, seconds: float) -> None:
        """Move the time without waking anyone: for synchronous code, which asks for the time but never sleeps."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        self._now += seconds

    async def run_until_idle(self, limit_seconds: float = 86_400.0) -> float:
        """Move the time until no task sleeps any more; returns the seconds that this took.

        Raises NeverIdle, with the time moved by `limit_seconds`, if there are sleepers even then.
        """
        begin = self._now
        await self.settle()
        while (wake_at := self._next_wake()) is not None:
            if wake_at > begin + limit_seconds:
                self._now = begin + limit_seconds
                raise NeverIdle(f"{self.sleepers} task(s) still sleep after {limit_seconds:g} s of virtual time")
            await self._wake_next()
        return self._now - begin

    async def settle(self) -> None:
        """Let the other tasks run, without any time passing, until each of them waits for something."""
        ready: Any = getattr(asyncio.get_running_loop(), "_ready", None)
        if ready is None:
            for _ in range(_TURNS_ON_AN_OPAQUE_LOOP):
                await _let_others_run_once()
            return
        for _ in range(_TURNS_WITHOUT_END):
            if not ready:
                return
            await _let_others_run_once()
        raise NeverIdle("a task keeps running without ever waiting, so that virtual time cannot move")

    @property
    def sleepers(self) -> int:
        """How many tasks sleep on this clock."""
        return sum(1 for _, _, future in self._sleepers if not future.done())

    @property
    def next_wake(self) -> float | None:
        """When the next sleeper wakes, by the clock that never goes backwards; None if nobody sleeps."""
        return self._next_wake()

    def _next_wake(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():  # a cancelled sleeper never wakes
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    async def _wake_next(self) -> None:
        self._now, _, future = heapq.heappop(self._sleepers)
        future.set_result(None)
        await self.settle()


async def _let_others_run_once() -> None:
    await SystemClock().sleep(0)
