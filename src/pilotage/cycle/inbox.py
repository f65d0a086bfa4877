"""What happened outside, waiting for the loop.

Watches and finished API calls put their news here; the scheduler loop takes them out between two cycles. So a cycle
sees one unchanging cluster without copying it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

News = Callable[[], None]


class Inbox:
    """A list of things to do before the next cycle."""

    def __init__(self) -> None:
        self._news: deque[News] = deque()
        self._arrived = asyncio.Event()

    def put(self, news: News) -> None:
        self._news.append(news)
        self._arrived.set()

    def wake(self) -> None:
        """Let the loop look at the queue although there is no news."""
        self._arrived.set()

    @property
    def is_empty(self) -> bool:
        return not self._news

    def drain(self) -> int:
        """Do everything that has arrived, in order; returns how much that was."""
        self._arrived.clear()
        count = 0
        while self._news:
            self._news.popleft()()
            count += 1
        return count

    async def arrival(self) -> None:
        await self._arrived.wait()
