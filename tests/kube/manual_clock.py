"""A clock that a test moves by hand, and one that never makes anybody wait."""

from __future__ import annotations

import asyncio


class ManualClock:
    """Time stands still until the test says otherwise."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here should sleep")


class HurriedClock(ManualClock):
    """A sleep passes at once and is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.naps: list[float] = []
        self._napped = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self._napped.set()
        self.now += seconds
        await asyncio.sleep(0)

    async def until_napped(self, times: int) -> None:
        async with asyncio.timeout(20):
            while len(self.naps) < times:
                self._napped.clear()
                await self._napped.wait()
