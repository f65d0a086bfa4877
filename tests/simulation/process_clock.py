"""The clock of one machine: its time of day can be set, and a process on it can be stopped for a while (SIGSTOP)."""

from __future__ import annotations

import asyncio

from pilotage.testing import VirtualClock


class ProcessClock:
    """A `pilotage.clock.Clock` over the common virtual time."""

    def __init__(self, inner: VirtualClock) -> None:
        self._inner = inner
        self._awake = asyncio.Event()
        self._awake.set()
        self.set_by = 0.0

    def time(self) -> float:
        return self._inner.time() + self.set_by

    def monotonic(self) -> float:
        return self._inner.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)
        await self.awake()

    async def awake(self) -> None:
        """Return when the process runs: at once, unless it is paused."""
        while not self._awake.is_set():
            await self._awake.wait()

    def pause(self) -> None:
        self._awake.clear()

    def go_on(self) -> None:
        self._awake.set()
