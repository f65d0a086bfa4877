"""The inbox: changes from outside that wait for the scheduler loop.

Watches and finished API calls put their news here; the scheduler loop takes them out between two cycles. So a cycle
sees one unchanging cluster without copying it. Pods that can be scheduled do not wait for all of the news: what has not
taken effect when a slice of time is over is left for the next turn.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Final

from pilotage.clock import Clock
from pilotage.observe.task_errors import TaskErrors

SLICE_SECONDS: Final = 0.05

News = Callable[[], object]


class Inbox:
    """A list of things to do before the next cycle."""

    def __init__(self, errors: TaskErrors | None = None, clock: Clock | None = None) -> None:
        """`errors` hears of news that could not take effect; with a clock, they are taken in slices of time."""
        self._clock = clock
        self._slice_ends = math.inf
        self._errors = errors if errors is not None else TaskErrors()
        self._news: deque[News] = deque()
        self._arrived = asyncio.Event()

    def put(self, news: News) -> None:
        self._news.append(news)
        self._arrived.set()

    def put_back(self, rest: News) -> None:
        """What is left of the news that is taking effect: it comes first in the next turn."""
        self._news.appendleft(rest)

    def is_slice_over(self, now: float) -> bool:
        """Whether what is taking effect has had its time. `now` is by the clock that never goes backwards."""
        return now > self._slice_ends

    def wake(self) -> None:
        """Let the loop look at the queue although there is no news."""
        self._arrived.set()

    @property
    def is_empty(self) -> bool:
        return not self._news

    def drain(self) -> int:
        """Do what has arrived, in order, for a slice of time; returns how much that was. What fails stops no other."""
        self._arrived.clear()
        if self._clock is not None:
            self._slice_ends = self._clock.monotonic() + SLICE_SECONDS
        count = 0
        while self._news and (self._clock is None or self._clock.monotonic() <= self._slice_ends):
            try:
                self._news.popleft()()
            except Exception as error:
                self._errors.failed("inbox", error)
            count += 1
        if self._news:
            self._arrived.set()
        return count

    async def arrival(self) -> None:
        await self._arrived.wait()
