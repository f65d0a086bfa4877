"""Rules for Kueue's Workloads: pod sets that are queued, and what is fixed while quota is booked for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.json_fields import dict_or_empty
from pilotage.sandbox.rules.validation.kind_rules import Change, KindRules
from pilotage.sandbox.rules.validation.kueue_workload_status import (
    StatusOfWorkload,
    is_true,
    workload_status_errors,
)
from pilotage.sandbox.rules.validation.metadata import Metadata
from pilotage.sandbox.rules.validation.names import label_problem, subdomain_problem
from pilotage.sandbox.rules.validation.pod_shapes import Anything, PodTemplate
from pilotage.sandbox.rules.validation.problems import (
    Errors,
    at_least,
    duplicate,
    invalid,
    not_supported,
    required,
)
from pilotage.sandbox.rules.validation.shapes import Int32, Shape
from pilotage.sandbox.rules.validation.workloads import immutable_errors

_MOST_POD_SETS: Final = 18
_CLASS_KINDS: Final = {"kueue.x-k8s.io": "WorkloadPriorityClass", "scheduling.k8s.io": "PriorityClass"}


class PodSet(Shape):
    name: str | None = None
    template: PodTemplate | None = None
    count: Int32 | None = None
    min_count: Int32 | None = None


class PriorityClassRef(Shape):
    group: str | None = None
    kind: str | None = None
    name: str | None = None


class WorkloadSpec(Shape):
    pod_sets: list[PodSet] | None = None
    queue_name: str | None = None
    priority_class_ref: PriorityClassRef | None = None
    priority: Int32 | None = None
    active: bool | None = None
    maximum_execution_time_seconds: Int32 | None = None


class Workload(Shape):
    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata | None = None
    spec: WorkloadSpec | None = None
    status: Anything | None = None


def _workload_errors(workload: Workload) -> Errors:
    spec = workload.spec
    if spec is None or not spec.pod_sets:
        return [required("spec.podSets")]
    errors = _pod_sets_errors(spec.pod_sets)
    if spec.queue_name and (problem := subdomain_problem(spec.queue_name)):
        errors.append(invalid("spec.queueName", spec.queue_name, problem))
    if spec.priority_class_ref is not None:
        errors += _class_errors(spec.priority_class_ref)
        if spec.priority is None:
            errors.append(invalid("spec.priority", None, "priority should not be nil when priorityClassRef is set"))
    path = "spec.maximumExecutionTimeSeconds"
    return errors + at_least(path, spec.maximum_execution_time_seconds, 1, "must be greater than 0")


def _class_errors(reference: PriorityClassRef) -> Errors:
    errors: Errors = []
    if reference.group not in _CLASS_KINDS:
        errors.append(not_supported("spec.priorityClassRef.group", reference.group, _CLASS_KINDS))
    elif reference.kind != _CLASS_KINDS[reference.group]:
        kinds = (_CLASS_KINDS[reference.group],)
        errors.append(not_supported("spec.priorityClassRef.kind", reference.kind, kinds))
    if problem := subdomain_problem(reference.name or ""):
        errors.append(invalid("spec.priorityClassRef.name", reference.name, problem))
    return errors


def _pod_sets_errors(pod_sets: list[PodSet]) -> Errors:
    errors: Errors = []
    if len(pod_sets) > _MOST_POD_SETS:
        errors.append(invalid("spec.podSets", len(pod_sets), f"must have at most {_MOST_POD_SETS} items"))
    seen: set[str] = set()
    for index, pod_set in enumerate(pod_sets):
        place = f"spec.podSets[{index}]"
        if not pod_set.name:
            errors.append(required(f"{place}.name"))
        elif problem := label_problem(pod_set.name):
            errors.append(invalid(f"{place}.name", pod_set.name, problem))
        elif pod_set.name in seen:
            errors.append(duplicate(f"{place}.name", pod_set.name))
        seen.add(pod_set.name or "")
        errors += _count_errors(pod_set, place)
    if sum(pod_set.min_count is not None for pod_set in pod_sets) > 1:
        errors.append(invalid("spec.podSets", "", "at most one podSet can use minCount"))
    return errors


def _count_errors(pod_set: PodSet, path: str) -> Errors:
    errors = at_least(f"{path}.count", pod_set.count, 0)
    errors += at_least(f"{path}.minCount", pod_set.min_count, 1, "must be greater than 0")
    if pod_set.template is None:
        errors.append(required(f"{path}.template"))
    if pod_set.min_count is not None and pod_set.min_count > (pod_set.count if pod_set.count is not None else 1):
        errors.append(invalid(f"{path}.minCount", pod_set.min_count, "should be positive and less or equal to count"))
    return errors


def _workload_update_errors(change: Change) -> Errors:
    status = dict_or_empty(change.old.get("status"))
    errors: Errors = []
    if is_true(status, "QuotaReserved"):
        errors += immutable_errors(change, "podSets", "queueName")
    if is_true(status, "Admitted"):
        errors += immutable_errors(change, "maximumExecutionTimeSeconds")
    return errors


KUEUE_WORKLOAD_RULES: Final[Mapping[str, KindRules]] = {
    "Workload": KindRules(
        Workload,
        _workload_errors,
        update=_workload_update_errors,
        status=workload_status_errors,
        status_shape=StatusOfWorkload,
    )
}
