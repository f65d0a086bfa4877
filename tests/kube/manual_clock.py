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

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
