"""The workloads that wait in a ClusterQueue with admission fair sharing: one line per LocalQueue.

Who is next is the first of the line whose LocalQueue has used least; lines with equal usage are one line. Only a
preemptor that waits for its victims is before all: they would take their place back while others are tried. Usage
changes with every reservation and every sample, and nothing has to be sorted anew for that. It offers what
`PendingWorkloads` offers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import groupby

from pilotage.jobs.ordering import OrderKey
from pilotage.jobs.pending import KnownRejection, PendingWorkloads
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.room import NoRoom


class SharedPending:
    def __init__(self, share: Callable[[str], float]) -> None:
        self._share = share
        self._lines: dict[str, PendingWorkloads] = {}

    def _line(self, record: WorkloadRecord) -> PendingWorkloads:
        found = self._lines.get(record.local_queue_key)
        if found is None:
            found = self._lines[record.local_queue_key] = PendingWorkloads()
        return found

    # --- counts -------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(len(line) for line in self._lines.values())

    @property
    def active_count(self) -> int:
        return sum(line.active_count for line in self._lines.values())

    @property
    def inadmissible_count(self) -> int:
        return sum(line.inadmissible_count for line in self._lines.values())

    @property
    def backoff(self) -> dict[str, WorkloadRecord]:
        return {uid: record for line in self._lines.values() for uid, record in line.backoff.items()}

    # --- coming and going ---------------------------------------------------------------------------------------------

    def add(self, record: WorkloadRecord, key: OrderKey) -> None:
        self._line(record).add(record, key)

    def add_backoff(self, record: WorkloadRecord) -> None:
        self._line(record).add_backoff(record)

    def remove(self, record: WorkloadRecord) -> None:
        self._line_with(record).remove(record)

    def _line_with(self, record: WorkloadRecord) -> PendingWorkloads:
        """Where it is: its LocalQueue may be another one by now."""
        here = self._lines.get(record.local_queue_key)
        if here is not None and here.holds(record):
            return here
        return next(line for line in self._lines.values() if line.holds(record))

    def is_sticky(self, record: WorkloadRecord) -> bool:
        return any(line.is_sticky(record) for line in self._lines.values())

    def stick(self, record: WorkloadRecord) -> None:
        self._line_with(record).stick(record)

    def unstick(self) -> None:
        for line in self._lines.values():
            line.unstick()

    # --- who is next --------------------------------------------------------------------------------------------------

    def head(self) -> WorkloadRecord | None:
        found: tuple[bool, float, OrderKey] | None = None
        head: WorkloadRecord | None = None
        for name, line in self._lines.items():
            first = line.head()
            if first is not None:
                standing = (not line.is_sticky(first), self._share(name), line.key_of(first))
                if found is None or standing < found:
                    found, head = standing, first
        return head

    def begin(self, head: WorkloadRecord, generation: int) -> None:
        self._line_with(head).begin(head, generation)

    # --- inadmissible, and woken --------------------------------------------------------------------------------------

    def mark_inadmissible(self, record: WorkloadRecord, known: KnownRejection) -> None:
        self._line_with(record).mark_inadmissible(record, known)

    def wake_all(self) -> None:
        for line in self._lines.values():
            line.wake_all()

    def wake_on_release(self) -> None:
        for line in self._lines.values():
            line.wake_on_release()

    def wake_on_room(self, may_fit: Callable[[NoRoom], bool]) -> None:
        for line in self._lines.values():
            line.wake_on_room(may_fit)

    def may_have_more(self, generation: int) -> bool:
        return any(line.may_have_more(generation) for line in self._lines.values())

    def wake_first_within(self, generation: int, reach: Callable[[FlavorResource, int], int]) -> None:
        """In every line: which of them is next is another question."""
        for line in self._lines.values():
            line.wake_first_within(generation, reach)

    # --- looking ------------------------------------------------------------------------------------------------------

    def records(self) -> Iterator[WorkloadRecord]:
        for line in self._lines.values():
            yield from line.records()

    def kinds(self) -> Iterator[tuple[WorkloadRecord, int]]:
        for line in self._lines.values():
            yield from line.kinds()

    def in_order(self, order_key: Callable[[WorkloadRecord], OrderKey]) -> Iterator[WorkloadRecord]:
        sticky = [record for line in self._lines.values() if (record := line.sticky()) is not None]
        yield from sorted(sticky, key=order_key)
        by_share = sorted((self._share(name), name) for name in self._lines)
        for _, names in groupby(by_share, key=lambda item: item[0]):
            runs = [self._lines[name].in_order(order_key) for _, name in names]
            others = [(record for record in run if record not in sticky) for run in runs]
            yield from heapq.merge(*others, key=order_key)

    def check(self) -> None:
        for name, line in self._lines.items():
            line.check()
            assert all(record.local_queue_key == name for record in line.records()), "each is in its own line"
