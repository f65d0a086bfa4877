"""When which workload must be looked at again: one due time per workload, the nearest first."""

from __future__ import annotations

import heapq
from itertools import count

from pilotage.jobs.record import WorkloadRecord


class Timers:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, WorkloadRecord]] = []
        self._order = count()

    def set(self, record: WorkloadRecord, due: int | None) -> None:
        """Replace the workload's timer."""
        if due == record.due:
            return
        record.due = due
        if due is not None:
            heapq.heappush(self._heap, (due, next(self._order), record))

    def next_due(self) -> int | None:
        while self._heap and self._heap[0][2].due != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: int) -> WorkloadRecord | None:
        """One workload whose time has come; its timer is off then."""
        due = self.next_due()
        if due is None or due > now:
            return None
        record = heapq.heappop(self._heap)[2]
        record.due = None
        return record
