"""The status of a workload as it stands in the API: read when a workload is first seen, written after changes."""

from __future__ import annotations

import msgspec

from pilotage.clock import rfc3339
from pilotage.jobs import conditions as c
from pilotage.jobs.conditions import epoch
from pilotage.jobs.quota import FlavorResource, amount_of
from pilotage.jobs.record import CheckState, WorkloadRecord, check_state
from pilotage.jobs.rejections import shown
from pilotage.jobs.shapes import WorkloadShape
from pilotage.model.kueue import (
    AdmissionCheckState,
    EvictionCount,
    PodSetRequest,
    RequeueState,
    SchedulingStats,
    Workload,
    WorkloadStatus,
)


def new_record(workload: Workload, shape: WorkloadShape, now: int) -> WorkloadRecord:
    """What the object says, status included."""
    metadata, spec, status = workload.metadata, workload.spec, workload.status
    created = metadata.creation_timestamp
    record = WorkloadRecord(
        seen=workload,
        key=workload.key,
        uid=workload.uid or workload.key,
        namespace=workload.namespace,
        created=epoch(created) if created else now,
        shape=shape,
        priority=spec.priority or 0,
        is_active=spec.active,
        queue_name=spec.queue_name,
        admission=status.admission,
        past_seconds=status.accumulated_past_execution_time_seconds or 0,
    )
    record.conditions.take(status.conditions)
    if status.requeue_state is not None:
        record.requeue_count = status.requeue_state.count
        at = status.requeue_state.requeue_at
        record.requeue_at = epoch(at) if at else None
    if status.scheduling_stats is not None:
        for one in status.scheduling_stats.evictions:
            record.evictions[one.reason, one.underlying_cause] = one.count
    for check in status.admission_checks:
        record.checks[check.name] = check_state(check, epoch(check.last_transition_time))
    record.reclaimable = {one.name: one.count for one in status.reclaimable_pods}
    return record


def with_status(record: WorkloadRecord) -> Workload:
    """The object with the status that the record stands for."""
    if record.written is None:
        record.written = _status(record)
    return msgspec.structs.replace(record.seen, status=record.written)


def _status(record: WorkloadRecord) -> WorkloadStatus:
    requeue = None
    if record.requeue_count is not None or record.requeue_at is not None:
        at = record.requeue_at
        requeue = RequeueState(record.requeue_count, None if at is None else rfc3339(at))
    stats = None
    if record.evictions:
        counts = (EvictionCount(reason, cause, count) for (reason, cause), count in record.evictions.items())
        stats = SchedulingStats(tuple(counts))
    return WorkloadStatus(
        conditions=record.conditions.written(),
        admission=record.admission,
        requeue_state=requeue,
        scheduling_stats=stats,
        reclaimable_pods=record.seen.status.reclaimable_pods,
        admission_checks=tuple(_written(name, check) for name, check in record.checks.items()),
        resource_requests=_requests(record),
        accumulated_past_execution_time_seconds=record.past_seconds or None,
    )


def _requests(record: WorkloadRecord) -> tuple[PodSetRequest, ...]:
    if record.rejection is None or record.has_reservation:
        return ()
    return tuple(
        PodSetRequest(
            need.name,
            {name: shown(name, amount * record.count_of(index)) for name, amount in need.per_pod.items()},
        )
        for index, need in enumerate(record.shape.pod_sets)
    )


def _written(name: str, check: CheckState) -> AdmissionCheckState:
    return AdmissionCheckState(
        name=name,
        state=check.state,
        message=check.message,
        last_transition_time=rfc3339(check.since),
        requeue_after_seconds=check.requeue_after,
        retry_count=check.retries or None,
        pod_set_updates=check.updates,
    )


def booked_amounts(record: WorkloadRecord) -> dict[FlavorResource, int]:
    """What an admission uses, less what reclaimable pods have given back."""
    found: dict[FlavorResource, int] = {}
    if record.admission is None:
        return found
    counts = {need.name: record.count_of(index) for index, need in enumerate(record.shape.pod_sets)}
    for one in record.admission.pod_set_assignments:
        given = one.count or 0
        kept = min(given, counts.get(one.name, given))
        for resource, flavor in one.flavors.items():
            total = amount_of(resource, one.resource_usage.get(resource, 0))
            amount = total * kept // given if given else total
            if amount:
                found[flavor, resource] = found.get((flavor, resource), 0) + amount
    return found


def state_of(record: WorkloadRecord) -> str:
    """pending, reserved, admitted, evicting, inactive or finished."""
    if record.is_finished:
        return "finished"
    if record.has_reservation:
        if record.is_evicted:
            return "evicting"
        return "admitted" if record.is_admitted else "reserved"
    return "pending" if record.is_active else "inactive"


def pending_reason(record: WorkloadRecord) -> tuple[str, str]:
    """Reason and message of QuotaReserved=False."""
    found = record.conditions.get(c.QUOTA_RESERVED)
    return (found.reason, found.message) if found is not None and not found.is_true else ("", "")
