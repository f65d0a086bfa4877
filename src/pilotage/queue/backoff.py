"""How long a pod that failed has to wait: 1, 2, 4, 8, 10, 10 ... seconds, rounded up to whole seconds.

A group of n pods waits up to the root of n times as long: a large one takes more to try in vain.
A pod whose cycle used up its CPU time waits longer: 30 s, 1, 2, 4, 8, 10, 10 ... minutes.
"""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct

from pilotage.queue.sub_queues import QueuedPodInfo

_AFTER_OVERRUN_SECONDS: Final = 30.0
_MOST_AFTER_OVERRUN_SECONDS: Final = 600.0


class BackoffPolicy(Struct, frozen=True):
    initial_seconds: float = 1.0
    max_seconds: float = 10.0
    whole_seconds: bool = True
    """Round up to whole seconds: pods of one second are then in the order of the queue (SchedulerPopFromBackoffQ)."""

    def until(self, entry: QueuedPodInfo, since: float | None = None) -> float:
        """When the backoff ends that began `since` (None: with the last attempt), 0 if there is none.

        In whole seconds the pod is free from the next second on.
        """
        if entry.overruns:
            duration = _doubled(_AFTER_OVERRUN_SECONDS, entry.overruns, _MOST_AFTER_OVERRUN_SECONDS)
        else:
            count = entry.consecutive_errors or entry.unschedulable_count
            if not count or not self.max_seconds:
                return 0.0
            duration = _doubled(self.initial_seconds, count, self.max_seconds * math.sqrt(entry.size))
        until = (entry.timestamp if since is None else since) + duration
        return float(math.floor(until)) if self.whole_seconds else until

    def is_over(self, until: float, now: float) -> bool:
        return until < (math.floor(now) if self.whole_seconds else now)


def _doubled(initial_seconds: float, count: int, max_seconds: float) -> float:
    # Beyond 2**30 the doubling has met the maximum for every configuration that validates.
    return min(initial_seconds * float(2 ** min(count - 1, 30)), max_seconds)
