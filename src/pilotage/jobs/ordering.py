"""Who is first: the order inside a ClusterQueue and between the heads of queues use the same timestamp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pilotage.jobs import conditions as c
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.record import WorkloadRecord

RequeuingTimestamp = Literal["Eviction", "Creation"]
OrderKey = tuple[int, float, str]

_RECLAIMED_WHILE_BORROWING: Final = "InCohortReclaimWhileBorrowing"
_JUST_AFTER: Final = 0.001


def queue_timestamp(record: WorkloadRecord, requeuing: RequeuingTimestamp, *, sorts_by_priority: bool = True) -> float:
    """Since when the workload counts as waiting.

    Its creation, except after an eviction that sends it to the back: by an admission check always, by a readiness
    timeout if the administrator wants it so. A new reservation ends the eviction, so a preempted workload has its
    creation time again. Where heads are not sorted by priority, a borrower that had to make way for a more important
    one is behind it, or it would take the place back at once.
    """
    evicted = record.conditions.get(c.EVICTED)
    if evicted is None or not evicted.is_true:
        return record.created
    if evicted.reason == c.ADMISSION_CHECK:
        return evicted.since
    if evicted.reason in (c.PODS_READY_TIMEOUT, c.PODS_UNSCHEDULABLE) and requeuing == "Eviction":
        return evicted.since
    preempted = None if sorts_by_priority else record.conditions.get(c.PREEMPTED)
    if preempted is not None and preempted.is_true and preempted.reason == _RECLAIMED_WHILE_BORROWING:
        return preempted.since + _JUST_AFTER
    return record.created


def order_key(record: WorkloadRecord, requeuing: RequeuingTimestamp, *, sorts_by_priority: bool = True) -> OrderKey:
    """Smaller goes first: priority, then age, then UID."""
    since = queue_timestamp(record, requeuing, sorts_by_priority=sorts_by_priority)
    return -record.priority, since, record.uid


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The order that the configuration asks for."""

    requeuing: RequeuingTimestamp = "Eviction"
    sorts_by_priority: bool = True

    def key(self, record: WorkloadRecord) -> OrderKey:
        """Inside of a ClusterQueue."""
        return order_key(record, self.requeuing, sorts_by_priority=self.sorts_by_priority)

    def head_key(self, record: WorkloadRecord) -> OrderKey:
        """Between the heads of ClusterQueues."""
        key = self.key(record)
        return key if self.sorts_by_priority else (0, *key[1:])

    def timestamp(self, record: WorkloadRecord) -> float:
        return queue_timestamp(record, self.requeuing, sorts_by_priority=self.sorts_by_priority)


def queue_order(configuration: QueueingConfiguration) -> QueueOrder:
    ready = configuration.wait_for_pods_ready
    requeuing: RequeuingTimestamp = "Eviction" if ready is None else ready.requeuing_strategy.timestamp
    return QueueOrder(requeuing, configuration.feature_gates.get("PrioritySortingWithinCohort", True))
