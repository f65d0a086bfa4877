"""What to do about one job of any kind: decided from the job, its workload and the flavors, without doing it.

    no workload          suspend, then create the workload
    workload leaving     stop, restore, let the workload go
    job ended            report that to the engine
    admitted             start on the flavors of the admission; report readiness and reclaimable pods
    anything else        stop, restore, report when the last pod is gone; follow what the user changes meanwhile

Each call gives the next steps for what can be seen now; when their effects are seen it is called again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.batch_job import queue_patch
from pilotage.jobs.adapters.facts import RunFacts
from pilotage.jobs.adapters.kinds.job_kind import AnyJob, JobKind
from pilotage.jobs.adapters.kinds.registry import JOB
from pilotage.jobs.adapters.pod_set_info import PodSetConflict, PodSetInfo, pod_set_infos
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, WorkloadDraft, same_pod_sets
from pilotage.jobs.controller.steps import (
    CreateWorkload,
    PatchObject,
    RecordEvent,
    RemoveWorkload,
    ReportFinished,
    ReportPodsGone,
    ReportPodsReady,
    ReportReclaimable,
    Step,
)
from pilotage.jobs.controller.workload_facts import (
    followed,
    holds_quota,
    is_leaving,
    is_true,
    pending_checks_event,
    priority_followed,
    release_patch,
    same_reclaimable,
    should_run,
    why_stopped,
)
from pilotage.model.kueue import ResourceFlavor, Workload


def job_steps(
    job: AnyJob,
    workload: Workload | None,
    drafting: Drafting,
    flavors: Mapping[str, ResourceFlavor],
    kind: JobKind = JOB,
) -> Iterator[Step]:
    yield from _Plan(kind, job, drafting, flavors).steps(workload)


@dataclass(frozen=True, slots=True)
class _Plan:
    kind: JobKind
    job: AnyJob
    drafting: Drafting
    flavors: Mapping[str, ResourceFlavor]

    def steps(self, workload: Workload | None) -> Iterator[Step]:
        job, facts = self.job, self.kind.run_facts(self.job)
        if job.metadata.deletion_timestamp is not None:
            # Nothing has to be restored any more; the Job may wait for the workload to go (foreground deletion).
            if workload is not None and is_leaving(workload) and (patch := release_patch(workload)) is not None:
                yield PatchObject(workload, patch)
        elif workload is None:
            yield from self._without_workload(facts)
        elif is_leaving(workload):
            yield from self._leaving(facts, workload)
        elif is_true(workload, "Finished"):
            if (patch := release_patch(workload)) is not None:
                yield PatchObject(workload, patch)
        elif facts.ending is not None:
            event = RecordEvent(job, "FinishedWorkload", f"Workload '{workload.key}' is declared finished")
            yield ReportFinished(workload.key, facts.ending.reason, facts.ending.message, event)
        elif should_run(workload):
            yield from self._admitted(facts, workload)
            yield from priority_followed(job, workload, self.drafting)
        else:
            yield from self._stopped(facts, workload)

    def _without_workload(self, facts: RunFacts) -> Iterator[Step]:
        if facts.ending is not None:
            return
        job, draft = self.job, self.drafting()
        if not facts.is_suspended:
            event = RecordEvent(job, "Suspended", "Waits for its workload to be admitted")
            yield PatchObject(job, self.kind.suspend_patch(job), event=event)
        elif isinstance(draft, DraftProblem):
            yield RecordEvent(job, draft.reason, draft.message, "Warning")
        else:
            yield CreateWorkload(
                draft, RecordEvent(job, "CreatedWorkload", f"Created Workload: {draft.namespace}/{draft.name}")
            )

    def _leaving(self, facts: RunFacts, workload: Workload) -> Iterator[Step]:
        """The workload is being deleted: it knows what the Job looked like; it may not go before that is restored."""
        if facts.ending is None and (not facts.is_suspended or self.kind.is_steered(self.job)):
            yield from self._stop(facts, workload, "The workload is deleted")
        elif not facts.has_active_pods and (patch := release_patch(workload)) is not None:
            yield PatchObject(workload, patch)

    def _admitted(self, facts: RunFacts, workload: Workload) -> Iterator[Step]:
        job, kind = self.job, self.kind
        infos = pod_set_infos(workload, self.flavors)
        if isinstance(infos, PodSetConflict):
            yield ReportFinished(workload.key, "FailedToStart", infos.message)
        elif len(infos) != kind.count_of_pod_sets(job):
            yield ReportFinished(workload.key, "OutOfSync", "the workload has other pod sets than its Job")
        elif facts.is_suspended:
            yield from self._start(workload, infos)
        elif not kind.is_steered(job):
            # A user has let it go by hand: its pods may run anywhere.
            yield from self._stop(facts, workload, "Started on other nodes than those of its flavors")
        elif (patch := queue_patch(job, workload.spec.queue_name)) is not None:
            queue = workload.spec.queue_name
            text = f"The queue of a Job that runs cannot be changed; it is {queue} until the Job stops"
            yield PatchObject(job, patch, event=RecordEvent(job, "QueueNameRestored", text, "Warning"))
        elif self._is_resized(workload, infos):
            text = f"Deleted Workload {workload.key}: the job has another number of pods now than was admitted"
            yield RemoveWorkload(workload, RecordEvent(job, "DeletedWorkload", text))
        else:
            yield ReportPodsReady(workload.key, facts.are_pods_ready)
            reclaimable = kind.spare_pods(job, workload) or facts.reclaimable
            if not same_reclaimable(workload, reclaimable):
                yield ReportReclaimable(workload.key, reclaimable)

    def _is_resized(self, workload: Workload, infos: list[PodSetInfo]) -> bool:
        """It needs other quota than it has. An elastic job may shrink; quota that it gave back is gone."""
        spare = self.kind.spare_pods(self.job, workload)
        if spare is None:
            return not self.kind.has_size_of(self.job, workload, infos)
        return any(spare.get(one.name, 0) < one.count for one in workload.status.reclaimable_pods)

    def _start(self, workload: Workload, infos: list[PodSetInfo]) -> Iterator[Step]:
        job, kind = self.job, self.kind
        clear = kind.clear_start_patch(job)
        if clear is not None:
            yield PatchObject(job, clear, "status")
        elif kind.is_steered(job) and (patch := kind.restore_patch(job, workload.spec.pod_sets)) is not None:
            yield PatchObject(job, patch)
        else:
            admission = workload.status.admission
            queue = admission.cluster_queue if admission is not None else ""
            event = RecordEvent(job, "Started", f"Admitted by clusterQueue {queue}")
            yield PatchObject(job, kind.start_patch(job, infos), event=event)

    def _stopped(self, facts: RunFacts, workload: Workload) -> Iterator[Step]:
        job = self.job
        if not facts.is_suspended or self.kind.is_steered(job):
            yield from self._stop(facts, workload, why_stopped(workload))
        elif isinstance(draft := self.drafting(), WorkloadDraft):
            yield from followed(job, workload, draft)
            yield from pending_checks_event(job, workload)
        else:
            yield RecordEvent(job, draft.reason, draft.message, "Warning")
        if facts.is_suspended and not facts.has_active_pods and is_true(workload, "Evicted") and holds_quota(workload):
            yield ReportPodsGone(workload.key)

    def _stop(self, facts: RunFacts, workload: Workload, why: str) -> Iterator[Step]:
        """The next step on the way to a suspended Job that looks as its user wrote it."""
        job, kind = self.job, self.kind
        if not facts.is_suspended:
            yield PatchObject(job, kind.suspend_patch(job), event=RecordEvent(job, "Stopped", why))
        elif (clear := kind.clear_start_patch(job)) is not None:
            yield PatchObject(job, clear, "status")
        elif (patch := kind.restore_patch(job, workload.spec.pod_sets)) is not None:
            yield PatchObject(job, patch)


def taken_over(
    job: AnyJob, name: str, workload: Workload | None, draft: WorkloadDraft | DraftProblem
) -> Iterator[Step]:
    """Make a job the owner of the workload that somebody else made for it; from then on it is one like any other."""
    if isinstance(draft, DraftProblem):
        yield RecordEvent(job, draft.reason, draft.message, "Warning")
    elif workload is None:
        yield RecordEvent(job, "PrebuiltWorkloadNotFound", f"Waits for the workload {name}", is_recorded_once=True)
    elif workload.metadata.owner_references:
        owners = ", ".join(f"{one.kind}/{one.name}" for one in workload.metadata.owner_references)
        yield RecordEvent(job, "ErrWorkloadCompose", f"the workload {name} belongs to {owners} already", "Warning")
    elif not same_pod_sets(workload.spec.pod_sets, draft.pod_sets):
        text = f"the workload {name} is about other pods: names, counts and templates of its podSets must be the job's"
        yield RecordEvent(job, "ErrWorkloadCompose", text, "Warning")
    else:
        metadata = {
            "uid": workload.uid,
            "resourceVersion": workload.resource_version,
            "labels": dict(draft.labels),
            "ownerReferences": msgspec.to_builtins(draft.owners),
            "finalizers": [*(one for one in workload.metadata.finalizers if one != marks.IN_USE), marks.IN_USE],
        }
        event = RecordEvent(job, "TookOverWorkload", f"Takes over the workload {name}")
        yield PatchObject(workload, {"metadata": metadata}, event=event)
