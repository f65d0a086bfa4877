"""A workload follows what users change about its job: everything while it holds no quota, the priority always."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, WorkloadDraft, same_pod_sets
from pilotage.jobs.controller.steps import EventSubject, PatchObject, RecordEvent, RemoveWorkload, Step
from pilotage.jobs.controller.workload_facts import holds_quota, is_true
from pilotage.model.kueue import Workload

_ALWAYS = ("priority", "priorityClassRef")
"""What may change while quota is reserved."""


def followed(owner: EventSubject, workload: Workload, draft: WorkloadDraft) -> Iterator[Step]:
    """What makes the workload say again what its job says; nothing if it does."""
    differences = _differences(workload, draft)
    if not differences:
        return
    if holds_quota(workload):
        if "podSets" in differences:
            # Quota was reserved for something else.
            text = f"Deleted Workload {workload.key}: the job was changed"
            yield RemoveWorkload(workload, RecordEvent(owner, "DeletedWorkload", text))
            return
        differences = {name: value for name, value in differences.items() if name in _ALWAYS}
    if differences:
        yield _change(owner, workload, differences)


def priority_followed(
    owner: EventSubject, labels: Mapping[str, str], workload: Workload, drafting: Drafting
) -> Iterator[Step]:
    """Another priority class of a job that runs; others may preempt it then, or it may not be preempted any more."""
    known = workload.spec.priority_class_ref
    name = known.name if known is not None and known.kind == "WorkloadPriorityClass" else ""
    if labels.get(marks.PRIORITY_CLASS, "") == name:
        return
    draft = drafting()
    if isinstance(draft, DraftProblem):
        yield RecordEvent(owner, draft.reason, draft.message, "Warning")
        return
    differences = {name: value for name, value in _differences(workload, draft).items() if name in _ALWAYS}
    if differences:
        yield _change(owner, workload, differences)


def _change(owner: EventSubject, workload: Workload, differences: dict[str, Any]) -> PatchObject:
    identity = {"uid": workload.uid, "resourceVersion": workload.resource_version}
    event = RecordEvent(owner, "UpdatedWorkload", f"Updated Workload {workload.key}: {', '.join(sorted(differences))}")
    return PatchObject(workload, {"metadata": identity, "spec": differences}, event=event)


def _differences(workload: Workload, draft: WorkloadDraft) -> dict[str, Any]:
    spec, wanted = workload.spec, draft.spec()
    differences: dict[str, Any] = {}
    if not same_pod_sets(spec.pod_sets, draft.pod_sets):
        differences["podSets"] = wanted["podSets"]
    if spec.queue_name != draft.queue_name:
        differences["queueName"] = draft.queue_name
    if spec.priority_class_ref != draft.priority.source:
        # Another class counts; another value of the same class does not.
        differences["priority"] = draft.priority.value
        differences["priorityClassRef"] = wanted.get("priorityClassRef")
    if spec.maximum_execution_time_seconds != draft.maximum_execution_seconds:
        differences["maximumExecutionTimeSeconds"] = draft.maximum_execution_seconds
    return differences


def pending_checks_event(owner: EventSubject, workload: Workload) -> Iterator[RecordEvent]:
    """What admission checks say that are not ready yet."""
    pending = [one for one in workload.status.admission_checks if one.state == "Pending" and one.message]
    if pending and holds_quota(workload) and not is_true(workload, "Evicted"):
        text = "; ".join(f"{one.name}: {one.message}" for one in pending)
        yield RecordEvent(owner, "UpdatedAdmissionCheck", text, is_recorded_once=True)


def same_reclaimable(workload: Workload, counts: Mapping[str, int]) -> bool:
    known = {one.name: one.count for one in workload.status.reclaimable_pods if one.count}
    # It may only grow while the workload is admitted.
    return all(known.get(name, 0) >= count for name, count in counts.items())
