"""What to do about one Job: decided from the Job, its workload and the flavors, without doing it.

    no workload          suspend, then create the workload
    workload leaving     stop, restore, let the workload go
    job ended            tell the engine
    admitted             start on the flavors of the admission; tell readiness and reclaimable pods
    anything else        stop, restore, tell when the last pod is gone; follow what the user changes meanwhile

Each call gives the next steps for what can be seen now; when their effects are seen it is called again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilotage.jobs.adapters import batch_job
from pilotage.jobs.adapters.facts import RunFacts
from pilotage.jobs.adapters.pod_set_info import PodSetConflict, PodSetInfo, pod_set_infos
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, WorkloadDraft
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
from pilotage.model.workloads import Job


def job_steps(
    job: Job,
    workload: Workload | None,
    drafting: Drafting,
    flavors: Mapping[str, ResourceFlavor],
) -> Iterator[Step]:
    facts = batch_job.run_facts(job)
    if job.metadata.deletion_timestamp is not None:
        # Nothing has to be restored any more; the Job may wait for the workload to go (foreground deletion).
        if workload is not None and is_leaving(workload) and (patch := release_patch(workload)) is not None:
            yield PatchObject(workload, patch)
    elif workload is None:
        yield from _without_workload(job, facts, drafting)
    elif is_leaving(workload):
        yield from _leaving(job, facts, workload)
    elif is_true(workload, "Finished"):
        if (patch := release_patch(workload)) is not None:
            yield PatchObject(workload, patch)
    elif facts.ending is not None:
        event = RecordEvent(job, "FinishedWorkload", f"Workload '{workload.key}' is declared finished")
        yield ReportFinished(workload.key, facts.ending.reason, facts.ending.message, event)
    elif should_run(workload):
        yield from _admitted(job, facts, workload, flavors)
        yield from priority_followed(job, job.labels, workload, drafting)
    else:
        yield from _stopped(job, facts, workload, drafting)


def _without_workload(job: Job, facts: RunFacts, drafting: Drafting) -> Iterator[Step]:
    if facts.ending is not None:
        return
    draft = drafting()
    if not facts.is_suspended:
        event = RecordEvent(job, "Suspended", "Waits for its workload to be admitted")
        yield PatchObject(job, batch_job.suspend_patch(job), event=event)
    elif isinstance(draft, DraftProblem):
        yield RecordEvent(job, draft.reason, draft.message, "Warning")
    else:
        yield CreateWorkload(
            draft, RecordEvent(job, "CreatedWorkload", f"Created Workload: {draft.namespace}/{draft.name}")
        )


def _leaving(job: Job, facts: RunFacts, workload: Workload) -> Iterator[Step]:
    """The workload is being deleted: it knows what the Job looked like, so it may not go before the Job is restored."""
    if facts.ending is None and (not facts.is_suspended or batch_job.is_steered(job)):
        yield from _stop(job, facts, workload, "The workload is deleted")
    elif not facts.has_active_pods and (patch := release_patch(workload)) is not None:
        yield PatchObject(workload, patch)


def _admitted(job: Job, facts: RunFacts, workload: Workload, flavors: Mapping[str, ResourceFlavor]) -> Iterator[Step]:
    infos = pod_set_infos(workload, flavors)
    if isinstance(infos, PodSetConflict):
        yield ReportFinished(workload.key, "FailedToStart", infos.message)
    elif len(infos) != 1:
        yield ReportFinished(workload.key, "OutOfSync", "the workload has other pod sets than its Job")
    elif facts.is_suspended:
        yield from _start(job, workload, infos[0])
    elif not batch_job.is_steered(job):
        # Somebody has let it go by hand: its pods may run anywhere.
        yield from _stop(job, facts, workload, "Started on other nodes than those of its flavors")
    elif (patch := batch_job.queue_patch(job, workload.spec.queue_name)) is not None:
        text = f"The queue of a Job that runs cannot be changed; it is {workload.spec.queue_name} until the Job stops"
        yield PatchObject(job, patch, event=RecordEvent(job, "QueueNameRestored", text, "Warning"))
    elif (wanted := _wanted_count(job, workload, infos[0])) != batch_job.pod_count(job):
        text = f"the Job has {batch_job.pod_count(job)} pods now, {wanted} were admitted"
        yield RemoveWorkload(workload, RecordEvent(job, "DeletedWorkload", f"Deleted Workload {workload.key}: {text}"))
    else:
        yield ReportPodsReady(workload.key, facts.are_pods_ready)
        if not same_reclaimable(workload, facts.reclaimable):
            yield ReportReclaimable(workload.key, facts.reclaimable)


def _wanted_count(job: Job, workload: Workload, info: PodSetInfo) -> int:
    """How many pods the Job should have: only a Job that may shrink is given the number that was admitted."""
    return info.count if batch_job.min_parallelism(job) is not None else workload.spec.pod_sets[0].count


def _start(job: Job, workload: Workload, info: PodSetInfo) -> Iterator[Step]:
    clear = batch_job.clear_start_patch(job)
    if clear is not None:
        yield PatchObject(job, clear, "status")
    elif batch_job.is_steered(job) and (patch := batch_job.restore_patch(job, workload.spec.pod_sets)) is not None:
        yield PatchObject(job, patch)
    else:
        admission = workload.status.admission
        queue = admission.cluster_queue if admission is not None else ""
        yield PatchObject(
            job,
            batch_job.start_patch(job, info),
            event=RecordEvent(job, "Started", f"Admitted by clusterQueue {queue}"),
        )


def _stopped(job: Job, facts: RunFacts, workload: Workload, drafting: Drafting) -> Iterator[Step]:
    if not facts.is_suspended or batch_job.is_steered(job):
        yield from _stop(job, facts, workload, why_stopped(workload))
    elif isinstance(draft := drafting(), WorkloadDraft):
        yield from followed(job, workload, draft)
        yield from pending_checks_event(job, workload)
    else:
        yield RecordEvent(job, draft.reason, draft.message, "Warning")
    if facts.is_suspended and not facts.has_active_pods and is_true(workload, "Evicted") and holds_quota(workload):
        yield ReportPodsGone(workload.key)


def _stop(job: Job, facts: RunFacts, workload: Workload, why: str) -> Iterator[Step]:
    """The next step on the way to a suspended Job that looks as its user wrote it."""
    if not facts.is_suspended:
        yield PatchObject(job, batch_job.suspend_patch(job), event=RecordEvent(job, "Stopped", why))
    elif (clear := batch_job.clear_start_patch(job)) is not None:
        yield PatchObject(job, clear, "status")
    elif (patch := batch_job.restore_patch(job, workload.spec.pod_sets)) is not None:
        yield PatchObject(job, patch)
