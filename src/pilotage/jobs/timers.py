"""The engine's time, and one timer per workload: what can run out (readiness, execution time, back-off) and when.

A timer that was changed leaves its old entry in the heap; it is dropped when its turn comes.
"""

from __future__ import annotations

import heapq
from itertools import count

from pilotage.clock import Clock
from pilotage.jobs.record import WorkloadRecord


class Timers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, WorkloadRecord]] = []
        self._due: dict[str, tuple[int, int]] = {}
        """UID -> when, and which entry of the heap says so."""
        self._order = count()

    def now(self) -> int:
        """Whole seconds: what the API can say."""
        return int(self._clock.time())

    def monotonic(self) -> float:
        """For how long something took."""
        return self._clock.monotonic()

    def set(self, record: WorkloadRecord, due: int | None) -> None:
        """Replace the workload's timer."""
        if due is None:
            if record.uid in self._due:
                del self._due[record.uid]
        elif self.due(record) != due:
            entry = self._due[record.uid] = (due, next(self._order))
            heapq.heappush(self._heap, (*entry, record))

    def due(self, record: WorkloadRecord) -> int | None:
        """When the workload's timer fires."""
        found = self._due.get(record.uid)
        return None if found is None else found[0]

    def next_due(self) -> int | None:
        while self._heap and self._due.get(self._heap[0][2].uid) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: int) -> WorkloadRecord | None:
        """One workload whose time has come; its timer is off then."""
        due = self.next_due()
        if due is None or due > now:
            return None
        record = heapq.heappop(self._heap)[2]
        del self._due[record.uid]
        return record
