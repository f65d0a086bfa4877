"""Slow down workloads that are preempted and admitted again and again.

Rules that are each reasonable can chase each other: a borrower preempts in its own queue, somebody more important in
another queue gets what was freed, the victim reclaims it, and it begins again, as fast as the API server can write. No
choice of order prevents all of these circles. So a workload that is preempted for the fourth time in quick succession
keeps its quota for a second although its pods are gone, then for two, four and so on: the circle goes on slowly enough
for something else to end it, and people are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pilotage.clock import Clock
from pilotage.model.kueue import Workload

_TOLERATED: Final = 3
_LONGEST_SECONDS: Final = 30.0
_QUIET_SECONDS: Final = 60.0
"""After so long without a preemption it is forgotten."""


@dataclass(slots=True)
class _Streak:
    evictions: int = -1
    """How often the workload had been preempted in all when it was last looked at."""
    length: int = 0
    release_at: float = float("-inf")


class Flapping:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streaks: dict[str, _Streak] = {}

    def seconds_to_hold(self, workload: Workload) -> float:
        """How long its quota should stay booked from now on; 0 if it may go."""
        evictions = preemptions(workload)
        now = self._clock.monotonic()
        streak = self._streaks.setdefault(workload.key, _Streak())
        if evictions != streak.evictions:
            is_quick = now - streak.release_at < _QUIET_SECONDS
            streak.evictions = evictions
            streak.length = streak.length + 1 if is_quick else 1
            streak.release_at = now + self._delay(streak.length)
        return max(streak.release_at - now, 0.0)

    def length(self, key: str) -> int:
        """How many times in a row."""
        streak = self._streaks.get(key)
        return 0 if streak is None else streak.length

    def forget(self, key: str) -> None:
        self._streaks.pop(key, None)

    @staticmethod
    def _delay(length: int) -> float:
        if length <= _TOLERATED:
            return 0.0
        # Large powers would overflow; the delay has long reached its maximum then.
        return float(min(2.0 ** min(length - _TOLERATED - 1, 10), _LONGEST_SECONDS))


def preemptions(workload: Workload) -> int:
    """How often the workload was preempted so far."""
    stats = workload.status.scheduling_stats
    if stats is None:
        return 0
    return sum(one.count for one in stats.evictions if one.reason == "Preempted")
