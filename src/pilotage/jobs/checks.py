"""Admission checks: which a workload needs, and what follows from their states."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.record import CheckState, WorkloadRecord

READY = "Ready"
RETRY = "Retry"
REJECTED = "Rejected"
PENDING = "Pending"


def required(queue: QueueState, flavors: Iterable[str] | None) -> list[str]:
    """Checks for a workload with these flavors; before a reservation (None) those that every flavor needs."""
    chosen = None if flavors is None else set(flavors)
    found = []
    for rule in queue.check_rules:
        if not rule.on_flavors:
            applies = True
        elif chosen is None:
            applies = set(queue.flavor_names) <= set(rule.on_flavors)
        else:
            applies = not chosen.isdisjoint(rule.on_flavors)
        if applies:
            found.append(rule.name)
    return found


def assigned_flavors(record: WorkloadRecord) -> list[str] | None:
    if record.admission is None:
        return None
    return [flavor for one in record.admission.pod_set_assignments for flavor in one.flavors.values()]


def sync(record: WorkloadRecord, queue: QueueState, now: int) -> bool:
    """Bring the list in line with the ClusterQueue: new ones are Pending, obsolete ones go. Whether it changed."""
    if not queue.check_rules and not record.checks:
        return False
    names = required(queue, assigned_flavors(record))
    if list(record.checks) == names:
        return False
    record.checks = {name: record.checks.get(name) or CheckState(since=now) for name in names}
    return True


def all_ready(record: WorkloadRecord) -> bool:
    return all(check.state == READY for check in record.checks.values())


def named(record: WorkloadRecord, state: str) -> list[str]:
    return [name for name, check in record.checks.items() if check.state == state]


def retry_at(record: WorkloadRecord) -> int | None:
    """The latest time before which a check in Retry does not want to see the workload again."""
    times = [
        check.since + check.requeue_after
        for check in record.checks.values()
        if check.state == RETRY and check.requeue_after is not None
    ]
    return max(times, default=None)


def reset(record: WorkloadRecord, now: int) -> None:
    """After an eviction every check begins anew."""
    record.checks = {name: check.reset(now) for name, check in record.checks.items()}
