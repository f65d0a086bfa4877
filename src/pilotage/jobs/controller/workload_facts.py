"""Short questions about a workload, and how it follows what users change about its job.

It follows everything while it has no quota, the priority always.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, WorkloadDraft, same_pod_sets
from pilotage.jobs.controller.steps import EventSubject, PatchObject, RecordEvent, RemoveWorkload, Step
from pilotage.model.kueue import Workload
from pilotage.model.meta import ApiObject, TimedCondition


def condition(workload: Workload, type_: str) -> TimedCondition | None:
    for one in workload.status.conditions:
        if one.type == type_:
            return one
    return None


def is_true(workload: Workload, type_: str) -> bool:
    found = condition(workload, type_)
    return found is not None and found.status == "True"


def should_run(workload: Workload) -> bool:
    return workload.spec.active and is_true(workload, "Admitted") and not is_true(workload, "Evicted")


def holds_quota(workload: Workload) -> bool:
    return is_true(workload, "QuotaReserved")


def is_leaving(workload: Workload) -> bool:
    return workload.metadata.deletion_timestamp is not None


def why_stopped(workload: Workload) -> str:
    """Why its job must not run."""
    evicted = condition(workload, "Evicted")
    if evicted is not None and evicted.status == "True":
        return evicted.message or evicted.reason
    if not workload.spec.active:
        return "The workload is deactivated"
    return "Not admitted by cluster queue"


def hold_patch(obj: ApiObject) -> dict[str, Any] | None:
    """Keep an object from going before we let it; None if we hold it already."""
    finalizers = obj.metadata.finalizers
    return None if marks.IN_USE in finalizers else _finalizers_patch(obj, [*finalizers, marks.IN_USE])


def release_patch(obj: ApiObject) -> dict[str, Any] | None:
    """Let an object go; None if we do not hold it."""
    finalizers = obj.metadata.finalizers
    if marks.IN_USE not in finalizers:
        return None
    return _finalizers_patch(obj, [one for one in finalizers if one != marks.IN_USE])


def _finalizers_patch(obj: ApiObject, finalizers: list[str]) -> dict[str, Any]:
    identity = {"uid": obj.uid, "resourceVersion": obj.resource_version}
    return {"metadata": {**identity, "finalizers": finalizers or None}}


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


def priority_followed(owner: EventSubject, workload: Workload, drafting: Drafting) -> Iterator[Step]:
    """Another priority of a job that runs; others may preempt it then, or it may not be preempted any more."""
    if drafting.has_priority(workload.spec):
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
    source = draft.priority.source
    follows_value = source is not None and source.kind == "WorkloadPriorityClass"
    if spec.priority_class_ref != source or (follows_value and (spec.priority or 0) != draft.priority.value):
        # Another value of the same PriorityClass of pods does not count: pods keep theirs, too.
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
