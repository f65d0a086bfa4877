"""How long a pod that failed has to wait: 1, 2, 4, 8, 10, 10 ... seconds, rounded up to whole seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pilotage.queue.entry import Entry


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    initial_seconds: float = 1.0
    max_seconds: float = 10.0

    def until(self, entry: Entry) -> float:
        """The whole second in which the backoff ends; the pod is free from the next second on."""
        count = entry.consecutive_errors or entry.unschedulable_count
        if not count or not self.max_seconds:
            return 0.0
        # Beyond 2**30 the doubling has met the maximum for every configuration that validates.
        duration = min(self.initial_seconds * 2 ** min(count - 1, 30), self.max_seconds)
        return float(math.floor(entry.timestamp + duration))

    @staticmethod
    def is_over(until: float, now: float) -> bool:
        return until < math.floor(now)
