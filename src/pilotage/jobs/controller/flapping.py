"""Slow down what comes and goes again and again: workloads that are preempted and admitted, or made and deleted.

Rules that are each reasonable can chase each other: a borrower preempts in its own queue, a more important workload in
another queue gets what was freed, the victim reclaims it, and it begins again, as fast as the API server can write. No
choice of order prevents all of these circles. So a workload that is preempted for the fourth time in quick succession
keeps its quota for a second although its pods are gone, then for two, four and so on: the circle goes on slowly enough
for something else to end it, and an event says so.

In the same way a workload that we have made is made again at once if it was deleted, but not for ever: as long as the
watch does not show that its Job is gone, garbage collection deletes it as fast as we make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pilotage.clock import Clock
from pilotage.model.kueue import Workload

_TOLERATED: Final = 3
_LONGEST_SECONDS: Final = 30.0
_QUIET_SECONDS: Final = 60.0
"""After so long without another time it is forgotten."""


@dataclass(slots=True)
class _Streak:
    length: int = 0
    wait_until: float = float("-inf")

    def go_on(self, now: float) -> None:
        is_quick = now - self.wait_until < _QUIET_SECONDS
        self.length = self.length + 1 if is_quick else 1
        self.wait_until = now + self._delay()

    def _delay(self) -> float:
        if self.length <= _TOLERATED:
            return 0.0
        # Large powers would overflow; the delay has long reached its maximum then.
        return float(min(2.0 ** min(self.length - _TOLERATED - 1, 10), _LONGEST_SECONDS))


@dataclass(slots=True)
class _Preempted(_Streak):
    evictions: int = -1
    """How often the workload had been preempted in all when it was last looked at."""


class Flapping:
    """Workloads that are preempted again and again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streaks: dict[str, _Preempted] = {}

    def seconds_to_hold(self, workload: Workload) -> float:
        """How long its quota should stay booked from now on; 0 if it may go."""
        evictions = preemptions(workload)
        now = self._clock.monotonic()
        streak = self._streaks.setdefault(workload.key, _Preempted())
        if evictions != streak.evictions:
            streak.evictions = evictions
            streak.go_on(now)
        return max(streak.wait_until - now, 0.0)

    def length(self, key: str) -> int:
        """How many times in a row."""
        streak = self._streaks.get(key)
        return 0 if streak is None else streak.length

    def forget(self, key: str) -> None:
        self._streaks.pop(key, None)


class Recreations:
    """Workloads that we have made lately, by key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streaks: dict[str, _Streak] = {}
        """Those made last at the end."""

    def seconds_to_wait(self, key: str) -> float:
        """How long the workload should not be made again from now on; 0 if it may be."""
        streak = self._streaks.get(key)
        return 0.0 if streak is None else max(streak.wait_until - self._clock.monotonic(), 0.0)

    def created(self, key: str) -> None:
        now = self._clock.monotonic()
        streak = self._streaks.pop(key, None) or _Streak()
        streak.go_on(now)
        self._streaks[key] = streak
        self._forget_the_quiet(now)

    def _forget_the_quiet(self, now: float) -> None:
        while self._streaks:
            oldest = next(iter(self._streaks))
            if now - self._streaks[oldest].wait_until < _QUIET_SECONDS:
                return
            del self._streaks[oldest]


def preemptions(workload: Workload) -> int:
    """How often the workload was preempted so far."""
    stats = workload.status.scheduling_stats
    if stats is None:
        return 0
    return sum(one.count for one in stats.evictions if one.reason == "Preempted")
