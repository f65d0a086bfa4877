"""Who is first: the order inside a ClusterQueue and between the heads of queues use the same timestamp."""

from __future__ import annotations

from typing import Literal

from pilotage.jobs import conditions as c
from pilotage.jobs.record import Record

RequeuingTimestamp = Literal["Eviction", "Creation"]
OrderKey = tuple[int, int, str]


def queue_timestamp(record: Record, requeuing: RequeuingTimestamp) -> int:
    """Since when the workload counts as waiting.

    Its creation, except after an eviction that sends it to the back: by an admission check always, by a readiness
    timeout if the administrator wants it so. A new reservation ends the eviction, so a preempted workload has its
    creation time again.
    """
    evicted = record.conditions.get(c.EVICTED)
    if evicted is None or not evicted.is_true:
        return record.created
    if evicted.reason == c.ADMISSION_CHECK:
        return evicted.since
    if evicted.reason == c.PODS_READY_TIMEOUT and requeuing == "Eviction":
        return evicted.since
    return record.created


def order_key(record: Record, requeuing: RequeuingTimestamp) -> OrderKey:
    """Smaller goes first: priority, then age, then UID."""
    return -record.priority, queue_timestamp(record, requeuing), record.uid
