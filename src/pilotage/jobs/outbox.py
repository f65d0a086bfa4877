"""Effects on their way out, in order; the changes of one workload's status are joined to one write."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pilotage.escaping import visible
from pilotage.jobs.effects import Counted, Deactivate, Effect, Event, Labels, Observed, StatusChanged
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.status import with_status

_LONGEST_EVENT = 1024


class Outbox:
    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._changed: dict[str, WorkloadRecord] = {}
        self._counts: dict[tuple[str, Labels], float] = {}

    def changed(self, record: WorkloadRecord) -> None:
        """The status is to be written."""
        self._changed[record.key] = record
        record.written = None

    def forget(self, record: WorkloadRecord) -> None:
        """The workload is gone: there is nothing to write to."""
        self._changed.pop(record.key, None)

    def event(self, record: WorkloadRecord, kind: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        self._effects.append(Event(record.key, record.uid, kind, reason, visible(message)[:_LONGEST_EVENT]))

    def count(self, metric: str, *labels: tuple[str, str]) -> None:
        self._counts[metric, labels] = self._counts.get((metric, labels), 0.0) + 1.0

    def observe(self, metric: str, value: float, labels: Labels) -> None:
        self._effects.append(Observed(metric, labels, value))

    def deactivate(self, record: WorkloadRecord) -> None:
        self._effects.append(Deactivate(record.key, record.uid))

    def take(self) -> list[Effect]:
        """Statuses first: who reads of an event should find what it speaks of."""
        taken: list[Effect] = [StatusChanged(key, partial(with_status, one)) for key, one in self._changed.items()]
        taken += (Counted(metric, labels, amount) for (metric, labels), amount in self._counts.items())
        taken += self._effects
        self._changed.clear()
        self._counts.clear()
        self._effects.clear()
        return taken
