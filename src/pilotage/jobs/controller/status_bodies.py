"""Statuses of workloads as JSON merge patches: complete, so that what is gone is removed and zero is written too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from pilotage.model.kueue import WorkloadStatus
from pilotage.model.meta import TimedCondition


def workload_status(status: WorkloadStatus) -> dict[str, Any]:
    plain = msgspec.to_builtins(status)
    return {
        "conditions": conditions(status.conditions),
        "admission": plain.get("admission"),
        "requeueState": _requeue_state(status),
        "schedulingStats": _stats(status),
        "reclaimablePods": _listed(status.reclaimable_pods, count=0),
        "admissionChecks": _listed(status.admission_checks, message=""),
        "resourceRequests": _listed(status.resource_requests),
        "accumulatedPastExecutionTimeSeconds": status.accumulated_past_execution_time_seconds,
    }


def without_reservation(status: WorkloadStatus) -> WorkloadStatus:
    """As it was for a moment between two admissions."""
    reasons = {"QuotaReserved": "PendingEvaluation", "Admitted": "NoReservation"}
    conditions = tuple(
        replace(one, status="False", reason=reasons[one.type], message="") if one.type in reasons else one
        for one in status.conditions
    )
    return replace(status, conditions=conditions, admission=None)


def conditions(found: Iterable[TimedCondition]) -> list[dict[str, Any]]:
    return [{"reason": "Unknown", "message": "", **msgspec.to_builtins(one)} for one in found]


def _requeue_state(status: WorkloadStatus) -> dict[str, Any] | None:
    state = status.requeue_state
    if state is None or (state.count is None and state.requeue_at is None):
        return None
    return {"count": state.count, "requeueAt": state.requeue_at}


def _stats(status: WorkloadStatus) -> dict[str, Any] | None:
    stats = status.scheduling_stats
    if stats is None or not stats.evictions:
        return None
    return {"evictions": _listed(stats.evictions, underlyingCause="", count=0)}


def _listed(items: Iterable[msgspec.Struct], **defaults: Any) -> list[dict[str, Any]] | None:
    return [{**defaults, **msgspec.to_builtins(one)} for one in items] or None
