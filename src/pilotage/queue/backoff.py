"""How long a pod that failed has to wait: 1, 2, 4, 8, 10, 10 ... seconds, rounded up to whole seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pilotage.queue.entry import Entry


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    initial_seconds: float = 1.0
    max_seconds: float = 10.0
    whole_seconds: bool = True
    """Round up to whole seconds: pods of one second are then in the order of the queue (SchedulerPopFromBackoffQ)."""

    def until(self, entry: Entry) -> float:
        """When the backoff ends, 0 if there is none; in whole seconds the pod is free from the next second on."""
        count = entry.consecutive_errors or entry.unschedulable_count
        if not count or not self.max_seconds:
            return 0.0
        # Beyond 2**30 the doubling has met the maximum for every configuration that validates.
        duration = min(self.initial_seconds * 2 ** min(count - 1, 30), self.max_seconds)
        until = entry.timestamp + duration
        return float(math.floor(until)) if self.whole_seconds else until

    def is_over(self, until: float, now: float) -> bool:
        return until < (math.floor(now) if self.whole_seconds else now)
