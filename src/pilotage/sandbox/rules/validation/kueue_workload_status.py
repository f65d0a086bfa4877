"""Rules for the status of Kueue's Workloads: who writes it may not contradict what was decided before.

An admission is never exchanged for another one, only taken back; pods that were given back stay given back as long as
the workload is admitted. The spec is read only if the status speaks of its pod sets: statuses are written often.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.sandbox.rules.json_fields import Json, dicts_in
from pilotage.sandbox.rules.validation.kind_rules import StatusChange
from pilotage.sandbox.rules.validation.names import subdomain_problem
from pilotage.sandbox.rules.validation.pod_shapes import Anything, Condition
from pilotage.sandbox.rules.validation.problems import (
    IMMUTABLE,
    Errors,
    at_least,
    duplicate,
    invalid,
    not_supported,
    one_of,
    required,
)
from pilotage.sandbox.rules.validation.shapes import Int32, Quantities, Shape

_MOST_CONDITIONS: Final = 16
_MOST_CHECKS: Final = 8
_CHECK_STATES: Final = ("Pending", "Ready", "Retry", "Rejected")
_STATUSES: Final = ("True", "False", "Unknown")


class PodSetAssignment(Shape):
    name: str | None = None
    flavors: dict[str, str] | None = None
    resource_usage: Quantities | None = None
    count: Int32 | None = None


class Admission(Shape):
    cluster_queue: str | None = None
    pod_set_assignments: list[PodSetAssignment] | None = None


class RequeueState(Shape):
    count: Int32 | None = None
    requeue_at: str | None = None


class ReclaimablePod(Shape):
    name: str | None = None
    count: Int32 | None = None


class AdmissionCheckState(Shape):
    name: str | None = None
    state: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    requeue_after_seconds: Int32 | None = None
    retry_count: Int32 | None = None
    pod_set_updates: list[Anything] | None = None


class WorkloadStatus(Shape):
    conditions: list[Condition] | None = None
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: list[ReclaimablePod] | None = None
    admission_checks: list[AdmissionCheckState] | None = None
    accumulated_past_execution_time_seconds: Int32 | None = None


class StatusOfWorkload(Shape):
    status: WorkloadStatus | None = None


class _PodSet(msgspec.Struct):
    name: str = "main"
    count: int = 1


class _Spec(msgspec.Struct, rename="camel"):
    pod_sets: list[_PodSet] = []


_decode_spec = msgspec.json.Decoder(_Spec).decode


def is_true(status: Json, kind: str) -> bool:
    conditions = dicts_in(status, "conditions")
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


def _pod_sets(spec: Any) -> list[_PodSet]:
    text = spec if isinstance(spec, msgspec.Raw) else msgspec.json.encode(spec or {})
    return _decode_spec(text).pod_sets


def workload_status_errors(change: StatusChange) -> Errors:
    after = change.after or WorkloadStatus()
    errors = conditions_errors(after.conditions or [])
    errors += _checks_errors(after.admission_checks or [])
    if after.requeue_state is not None:
        errors += at_least("status.requeueState.count", after.requeue_state.count, 0)
    path = "status.accumulatedPastExecutionTimeSeconds"
    errors += at_least(path, after.accumulated_past_execution_time_seconds, 0)
    if after.admission is not None and change.new["admission"] != change.old.get("admission"):
        errors += _admission_errors(change, after.admission)
    if after.reclaimable_pods or change.old.get("reclaimablePods"):
        errors += _reclaimable_errors(change, after.reclaimable_pods or [])
    return errors


def conditions_errors(conditions: list[Condition]) -> Errors:
    errors: Errors = []
    if len(conditions) > _MOST_CONDITIONS:
        errors.append(invalid("status.conditions", len(conditions), f"must have at most {_MOST_CONDITIONS} items"))
    seen: set[str | None] = set()
    for index, one in enumerate(conditions):
        path = f"status.conditions[{index}]"
        for field, value in (
            ("type", one.type),
            ("status", one.status),
            ("reason", one.reason),
            ("lastTransitionTime", one.last_transition_time),
        ):
            if not value:
                errors.append(required(f"{path}.{field}"))
        errors += one_of(f"{path}.status", one.status, _STATUSES)
        if one.type in seen:
            errors.append(duplicate(path, one.type))
        seen.add(one.type)
    return errors


def _checks_errors(checks: list[AdmissionCheckState]) -> Errors:
    errors: Errors = []
    if len(checks) > _MOST_CHECKS:
        errors.append(invalid("status.admissionChecks", len(checks), f"must have at most {_MOST_CHECKS} items"))
    for index, check in enumerate(checks):
        path = f"status.admissionChecks[{index}]"
        if problem := subdomain_problem(check.name or ""):
            errors.append(invalid(f"{path}.name", check.name, problem))
        if check.state not in _CHECK_STATES:
            errors.append(not_supported(f"{path}.state", check.state, _CHECK_STATES))
        errors += at_least(f"{path}.requeueAfterSeconds", check.requeue_after_seconds, 0)
        errors += at_least(f"{path}.retryCount", check.retry_count, 0)
    return errors


def _admission_errors(change: StatusChange, admission: Admission) -> Errors:
    if change.old.get("admission") is not None:
        return [invalid("status.admission", change.new["admission"], f"{IMMUTABLE}; set it to null first")]
    errors: Errors = []
    if problem := subdomain_problem(admission.cluster_queue or ""):
        errors.append(invalid("status.admission.clusterQueue", admission.cluster_queue, problem))
    known = [one.name for one in _pod_sets(change.spec)]
    assigned = [one.name or "" for one in admission.pod_set_assignments or ()]
    path = "status.admission.podSetAssignments"
    if len(assigned) != len(known):
        errors.append(invalid(path, len(assigned), "must have the same number of podSets as the spec"))
    for index, name in enumerate(assigned):
        if name not in known:
            errors.append(invalid(f"{path}[{index}].name", name, "is no podSet of this workload"))
    return errors


def _reclaimable_errors(change: StatusChange, pods: list[ReclaimablePod]) -> Errors:
    now = {one.name: one.count or 0 for one in pods}
    errors: Errors = []
    if change.new.get("reclaimablePods") != change.old.get("reclaimablePods"):
        counts = {one.name: one.count for one in _pod_sets(change.spec)}
        for index, one in enumerate(pods):
            path = f"status.reclaimablePods[{index}]"
            if one.name not in counts:
                errors.append(not_supported(f"{path}.name", one.name, counts))
            elif not 0 <= (one.count or 0) <= counts[one.name]:
                errors.append(invalid(f"{path}.count", one.count, f"should be less or equal to {counts[one.name]}"))
    if is_true(change.old, "Admitted") and is_true(change.new, "Admitted"):
        for before in dicts_in(change.old, "reclaimablePods"):
            if now.get(before.get("name"), 0) < before.get("count", 0):
                problem = f"cannot be less than {before.get('count')} while the workload is admitted"
                errors.append(invalid(f"status.reclaimablePods[{before.get('name')}].count", now, problem))
    return errors
