"""A workload follows what users change about its job while it holds no quota."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilotage.jobs.adapters.workload_draft import WorkloadDraft, same_pod_sets
from pilotage.jobs.controller.steps import Change, Note, RemoveWorkload, Step, Subject
from pilotage.jobs.controller.workload_facts import holds_quota
from pilotage.model.kueue import Workload


def followed(owner: Subject, workload: Workload, draft: WorkloadDraft) -> Iterator[Step]:
    """What makes the workload say again what its job says; nothing if it does."""
    differences = _differences(workload, draft)
    if not differences:
        return
    if holds_quota(workload):
        if "podSets" in differences:
            # Quota was reserved for something else.
            text = f"Deleted Workload {workload.key}: the job was changed"
            yield RemoveWorkload(workload, Note(owner, "DeletedWorkload", text))
        return
    identity = {"uid": workload.uid, "resourceVersion": workload.resource_version}
    note = Note(owner, "UpdatedWorkload", f"Updated Workload {workload.key}: {', '.join(sorted(differences))}")
    yield Change(workload, {"metadata": identity, "spec": differences}, note=note)


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
    return differences


def same_reclaimable(workload: Workload, counts: Mapping[str, int]) -> bool:
    known = {one.name: one.count for one in workload.status.reclaimable_pods if one.count}
    # It may only grow while the workload is admitted.
    return all(known.get(name, 0) >= count for name, count in counts.items())
