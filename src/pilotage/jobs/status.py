"""The status of a workload as it stands in the API: read when a workload is first seen, written after changes."""

from __future__ import annotations

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
from pilotage.model.meta import TimedCondition


def new_record(workload: Workload, shape: WorkloadShape, now: int) -> WorkloadRecord:
    """What the object says, status included."""
    metadata, spec, status = workload.metadata, workload.spec, workload.status
    created, requeue, stats = metadata.creation_timestamp, status.requeue_state, status.scheduling_stats
    conditions = c.Conditions()
    conditions.take(status.conditions)
    return WorkloadRecord(
        seen=workload,
        key=workload.key,
        uid=workload.uid or workload.key,
        namespace=workload.namespace,
        created=epoch(created) if created else now,
        shape=shape,
        priority=spec.priority or 0,
        is_active=spec.active,
        queue_name=spec.queue_name,
        conditions=conditions,
        admission=status.admission,
        requeue_count=requeue.count if requeue is not None else None,
        requeue_at=epoch(requeue.requeue_at) if requeue is not None and requeue.requeue_at else None,
        evictions={} if stats is None else {(one.reason, one.underlying_cause): one.count for one in stats.evictions},
        checks={one.name: check_state(one, epoch(one.last_transition_time)) for one in status.admission_checks},
        reclaimable={one.name: one.count for one in status.reclaimable_pods},
        past_seconds=status.accumulated_past_execution_time_seconds or 0,
        is_charged=conditions.is_true(c.QUOTA_RESERVED) or stats is not None,
    )


def with_status(record: WorkloadRecord) -> Workload:
    """The object with the status that the record stands for."""
    return record.written(_status)


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
        conditions=(*record.conditions.written(), *foreign_conditions(record.seen.status)),
        admission=record.admission,
        requeue_state=requeue,
        scheduling_stats=stats,
        reclaimable_pods=record.seen.status.reclaimable_pods,
        admission_checks=tuple(_written(name, check) for name, check in record.checks.items()),
        resource_requests=_requests(record),
        accumulated_past_execution_time_seconds=record.past_seconds or None,
    )


def foreign_conditions(status: WorkloadStatus) -> tuple[TimedCondition, ...]:
    """Those of other controllers, which stay as they are."""
    return tuple(one for one in status.conditions if one.type not in c.OWN)


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


def reserved_amounts(record: WorkloadRecord) -> dict[FlavorResource, int]:
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
