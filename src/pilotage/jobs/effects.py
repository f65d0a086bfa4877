"""What the engine wants done: typed effects, which the shell turns into API calls, events and metrics.

The engine never waits for an effect. It goes on as if a status were written; if a write is rejected for good the shell
says so (`JobQueueing.write_rejected`). The `Outbox` keeps effects, in order, until the shell takes them; the changes of
one workload's status are joined to one write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from pilotage.escaping import visible
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.status import with_status
from pilotage.model.kueue import Workload

_LONGEST_EVENT: Final = 1024

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """Write this status. All changes of a workload since the effects were last taken are one effect.

    The job's adapter reads from it what to do: start when Admitted is True, stop when Evicted is True or Admitted is
    not; and call the engine's `pods_gone` when the last pod of an evicted workload is gone.
    """

    key: str
    now: Callable[[], Workload]

    @property
    def workload(self) -> Workload:
        """As it is when asked for: many changes are joined to one write before they are read."""
        return self.now()


@dataclass(frozen=True, slots=True)
class Deactivate:
    """Set `spec.active` to false. The engine goes on when it sees the change."""

    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class Event:
    """Record an event on a workload."""

    key: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Counted:
    """Add to a counter; names are without the prefix `kueue_`.

    What has the labels `name` and `namespace` is about a LocalQueue too and is counted for that as well.
    """

    metric: str
    labels: Labels
    amount: float = 1.0


@dataclass(frozen=True, slots=True)
class Observed:
    """Observe a value in a histogram."""

    metric: str
    labels: Labels
    value: float


Effect = StatusChanged | Deactivate | Event | Counted | Observed


class Outbox:
    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._changed: dict[str, WorkloadRecord] = {}
        self._counts: dict[tuple[str, Labels], float] = {}
        self._cluster_queues: dict[str, None] = {}
        self._local_queues: dict[str, None] = {}

    def changed(self, record: WorkloadRecord) -> None:
        """The status is to be written."""
        self._changed[record.key] = record
        record.changed()

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

    # --- queues -------------------------------------------------------------------------------------------------------

    def cluster_queue_changed(self, name: str) -> None:
        """Its status is to be written."""
        self._cluster_queues[name] = None

    def local_queue_changed(self, key: str) -> None:
        self._local_queues[key] = None

    def queues_changed(self, record: WorkloadRecord) -> None:
        """The counts of a workload's queues may have changed."""
        if record.cluster_queue:
            self._cluster_queues[record.cluster_queue] = None
        self._local_queues[record.local_queue_key] = None

    def take_queues(self) -> tuple[list[str], list[str]]:
        """Names of ClusterQueues and keys of LocalQueues."""
        cluster_queues, local_queues = list(self._cluster_queues), list(self._local_queues)
        self._cluster_queues.clear()
        self._local_queues.clear()
        return cluster_queues, local_queues
