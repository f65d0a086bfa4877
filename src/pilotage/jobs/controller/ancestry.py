"""Jobs and pods that belong to a job which is queued: they are not queued themselves, they run when that one does.

A child Job that is running while its ancestor must not is suspended, with a mark, so that it can be let go again when
the ancestor runs; one that another client suspended is left alone. A gated pod of a queued Job is only let go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilotage.jobs.adapters import batch_job, plain_pods
from pilotage.jobs.adapters.kinds.job_kind import AnyJob, JobKind
from pilotage.jobs.controller.objects import Objects, ReconcileKey
from pilotage.jobs.controller.steps import PatchObject, RecordEvent, Step
from pilotage.jobs.controller.workload_facts import should_run
from pilotage.model.kueue import Workload
from pilotage.model.meta import OwnerReference
from pilotage.model.pod import Pod

_DEEPEST: Final = 10


class TooDeep(Exception):
    """More generations than anyone means."""


def ancestors(objects: Objects, namespace: str, owner: OwnerReference | None) -> list[tuple[ReconcileKey, AnyJob]]:
    """The jobs above an object, from its owner up; TooDeep if they are too many."""
    found: list[tuple[ReconcileKey, AnyJob]] = []
    while owner is not None and objects.kinds.owner(owner) is not None:
        subject = ReconcileKey(owner.kind, f"{namespace}/{owner.name}")
        above = objects.job(subject)
        if above is None or above.uid != owner.uid:
            break
        if len(found) == _DEEPEST:
            raise TooDeep
        found.append((subject, above))
        owner = above.metadata.controller
    return found


def child_job_steps(job: AnyJob, kind: JobKind, workload: Workload | None) -> Iterator[Step]:
    """`workload` is the ancestor's."""
    facts = kind.run_facts(job)
    if facts.ending is not None or job.metadata.deletion_timestamp is not None:
        return
    may_run = workload is not None and should_run(workload)
    if not may_run and not facts.is_suspended:
        event = RecordEvent(job, "Suspended", "Belongs to a job that is queued, and waits until that is admitted")
        yield PatchObject(job, kind.hold_patch(job), event=event)
    elif may_run and facts.is_suspended and batch_job.is_held(job):
        event = RecordEvent(job, "Started", "The job that it belongs to is admitted")
        yield PatchObject(job, kind.unhold_patch(job), event=event)


def child_pod_steps(pod: Pod, workload: Workload | None) -> Iterator[Step]:
    if plain_pods.is_gated(pod) and workload is not None and should_run(workload):
        yield PatchObject(pod, plain_pods.ungate_patch(pod))


def too_deep(obj: AnyJob | Pod) -> RecordEvent:
    text = f"Belongs to a chain of more than {_DEEPEST} jobs; it is not looked at"
    return RecordEvent(obj, "JobNestingTooDeep", text, "Warning")
