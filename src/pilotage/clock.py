"""Time as a parameter: the only module that reads a clock or sleeps.

Everything that needs the time takes a `Clock`. Production hands in `SystemClock`; tests and the simulator hand in
`pilotage.testing.VirtualClock`, whose time moves only when nothing else can run.
"""

from __future__ import annotations

import asyncio
import math
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """What the rest of the program may know about time."""

    def time(self) -> float:
        """Seconds since the epoch: for what people and the API server read."""

    def monotonic(self) -> float:
        """Seconds that never go backwards: for durations and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time (0 lets other tasks run once)."""


class SystemClock:
    """The machine's own clock."""

    # Looked at several times for every pod: the functions themselves, without a method of ours around them.
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SteadyClock:
    """Another clock without the jumps of its time of day, which people and time servers set: the time as it was when
    this was made, and what has passed since. For timestamps that only ever meet each other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.monotonic = clock.monotonic
        self._offset = clock.time() - clock.monotonic()

    def time(self) -> float:
        return self.monotonic() + self._offset

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class StoppedClock:
    """Stands still: for those who would measure how long work takes while the time of a simulation does not pass."""

    def time(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def cpu_seconds() -> float:
    """CPU time of this process so far, user and system: for measurements, never for decisions."""
    return time.process_time()


def thread_cpu_seconds() -> float:
    """CPU time of this thread so far."""
    return time.thread_time()


def perf_seconds() -> float:
    """A high-resolution counter for measuring short durations, never for decisions."""
    return time.perf_counter()


def rfc3339(epoch_seconds: float) -> str:
    """`2026-11-15T20:19:00Z`: how Kubernetes writes metav1.Time."""
    return f"{_second_text(int(epoch_seconds))}Z"


def rfc3339_micro(epoch_seconds: float) -> str:
    """`2026-11-15T20:19:00.123456Z`: how Kubernetes writes metav1.MicroTime."""
    fraction, second = math.modf(epoch_seconds)
    carried, micros = divmod(round(fraction * 1e6), 1_000_000)
    return f"{_second_text(int(second) + carried)}.{micros:06}Z"


_FIRST_SECOND = -62_135_596_800
_LAST_SECOND = 253_402_300_799


@lru_cache(maxsize=64)
def _second_text(second: int) -> str:
    """Much happens within the same second, and is stamped with it."""
    # Years are written with four digits: what lies outside of them is the first or the last moment that can be said.
    return datetime.fromtimestamp(min(max(second, _FIRST_SECOND), _LAST_SECOND), UTC).isoformat()[:19]


def parse_rfc3339(text: str) -> float:
    """Epoch seconds of an RFC 3339 timestamp; ValueError if it is none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
