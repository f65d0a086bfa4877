"""batch/v1 Jobs: suspended until their workload is admitted, steered to the nodes of its flavors, restored afterwards.

    submitted -> suspended --- admitted: start_patch (template, count, suspend: false) ---> running
                   ^                                                                         |
                   +-- restore_patch <- clear_start_patch <- suspend_patch <----- evicted ---+

Every function returns one step by what the Job looks like now, so a step that was lost is returned again. That the
template is steered shows by the label kueue.x-k8s.io/podset in it. It can be changed only while the Job is suspended
and has no start time, which is why stopping takes more than one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.facts import JobEnding, RunFacts
from pilotage.jobs.adapters.kinds.job_kind import AnyJob, CannotQueue
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.jobs.adapters.pod_templates import is_job_controllers, queued_template
from pilotage.model.kinds import KINDS
from pilotage.model.kueue import PodSet, Workload
from pilotage.model.pod_spec import Toleration
from pilotage.model.workloads import Job, PodTemplate

KIND = "Job"
POD_SET = "main"

Patch = dict[str, Any]


# --- what it is -------------------------------------------------------------------------------------------------------


def queue_of(job: AnyJob) -> str:
    return job.labels.get(marks.QUEUE_NAME, "")


def pod_sets(job: Job) -> tuple[PodSet, ...]:
    """The one pod set of a Job, as large as the Job is at the moment."""
    template = job.spec.template
    shown = queued_template(template.metadata.labels, template.metadata.annotations, template.spec)
    return (PodSet(name=POD_SET, template=shown, count=pod_count(job), min_count=min_parallelism(job)),)


def min_parallelism(job: Job) -> int | None:
    """The smallest size at which the Job may be admitted, if it may be admitted at less than its full size."""
    text = job.annotations.get(marks.MIN_PARALLELISM, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def run_facts(job: Job) -> RunFacts:
    status = job.status
    done = status.succeeded + len(status.uncounted_terminated_pods.succeeded)
    return RunFacts(
        is_suspended=job.spec.suspend,
        has_active_pods=status.active > 0,
        are_pods_ready=(status.ready or 0) + done >= pod_count(job),
        ending=_ending(job),
        reclaimable=_reclaimable(job),
    )


def is_steered(job: Job) -> bool:
    return marks.POD_SET in job.spec.template.metadata.labels


def pod_count(job: Job) -> int:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    return parallelism if job.spec.completions is None else min(parallelism, job.spec.completions)


def _ending(job: Job) -> JobEnding | None:
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            succeeded = condition.type == "Complete"
            default = "Job finished successfully" if succeeded else "Job failed"
            return JobEnding(succeeded, condition.message or default)
    return None


def _reclaimable(job: Job) -> dict[str, int]:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    if parallelism <= 1 or job.status.succeeded == 0 or job.spec.completions is None:
        return {}
    remaining = job.spec.completions - job.status.succeeded
    spare = pod_count(job) - max(remaining, 0)
    return {POD_SET: spare} if spare > 0 else {}


# --- what is done to it -----------------------------------------------------------------------------------------------


def suspend_patch(job: Job) -> Patch:
    return {"metadata": _identity(job), "spec": {"suspend": True}}


def queue_patch(job: AnyJob, queue: str) -> Patch | None:
    """Name the queue in which the Job was admitted; None if it does. One that never had a label needs none."""
    named = queue_of(job)
    if named == queue or (not named and queue == marks.DEFAULT_QUEUE):
        return None
    return {"metadata": {**_identity(job), "labels": {marks.QUEUE_NAME: queue}}}


def label_patch(job: AnyJob, queue: str) -> Patch:
    """Write the queue that a job without a name for one goes to."""
    return {"metadata": {**_identity(job), "labels": {marks.QUEUE_NAME: queue}}}


def start_patch(job: Job, info: PodSetInfo) -> Patch:
    """Steer the pods and let the Job go, in one write."""
    template = steered(job.spec.template, info)
    spec: Patch = {"suspend": False, "template": _template_patch(job.spec.template, template)}
    if min_parallelism(job) is not None:
        spec |= _size_patch(job, info.count)
    return {"metadata": _identity(job), "spec": spec}


def is_held(job: AnyJob) -> bool:
    """Suspended for the sake of the job that it belongs to, if it is suspended."""
    return job.annotations.get(marks.HELD) == "true"


def hold_patch(job: Job) -> Patch:
    return {"metadata": {**_identity(job), "annotations": {marks.HELD: "true"}}, "spec": {"suspend": True}}


def unhold_patch(job: Job) -> Patch:
    return {"metadata": {**_identity(job), "annotations": {marks.HELD: None}}, "spec": {"suspend": False}}


def clear_start_patch(job: Job) -> Patch | None:
    """For the status of a suspended Job: without it the template cannot be restored. None if there is none to clear."""
    if job.status.start_time is None:
        return None
    return {"metadata": _identity(job), "status": {"startTime": None}}


def restore_patch(job: Job, original: tuple[PodSet, ...]) -> Patch | None:
    """Undo what the start added; None if nothing is left to undo."""
    if not is_steered(job) or len(original) != 1:
        return None
    wanted = original[0]
    before = job.spec.template
    labels = {name: value for name, value in before.metadata.labels.items() if is_job_controllers(name)}
    metadata = replace(
        before.metadata,
        labels=labels | wanted.template.metadata.labels,
        annotations=dict(wanted.template.metadata.annotations),
    )
    own = wanted.template.spec
    spec = replace(before.spec, node_selector=dict(own.node_selector), tolerations=own.tolerations)
    body: Patch = {"template": _template_patch(before, replace(before, metadata=metadata, spec=spec))}
    if wanted.min_count is not None:
        body |= _size_patch(job, wanted.count)
    return {"metadata": _identity(job), "spec": body}


def steered(template: PodTemplate, info: PodSetInfo) -> PodTemplate:
    """The template with everything that admission adds to it."""
    metadata = replace(
        template.metadata,
        labels={**template.metadata.labels, **info.labels},
        annotations={**template.metadata.annotations, **info.annotations},
    )
    added = tuple(one for one in info.tolerations if one not in template.spec.tolerations)
    spec = replace(
        template.spec,
        node_selector={**template.spec.node_selector, **info.node_selector},
        tolerations=(*template.spec.tolerations, *added),
    )
    return replace(template, metadata=metadata, spec=spec)


def _size_patch(job: Job, count: int) -> Patch:
    patch: Patch = {"parallelism": count}
    if job.annotations.get(marks.COMPLETIONS_EQUAL_PARALLELISM) == "true":
        patch["completions"] = count
    return patch


def _template_patch(before: PodTemplate, after: PodTemplate) -> Patch:
    """A merge patch: keys and maps that went away are null, lists are whole."""
    metadata = {
        "labels": map_patch(before.metadata.labels, after.metadata.labels),
        "annotations": map_patch(before.metadata.annotations, after.metadata.annotations),
    }
    spec: Patch = {"nodeSelector": map_patch(before.spec.node_selector, after.spec.node_selector)}
    if before.spec.tolerations != after.spec.tolerations:
        spec["tolerations"] = plain_tolerations(after.spec.tolerations)
    return {"metadata": metadata, "spec": spec}


def map_patch(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None] | None:
    """What makes one map of the other; None, which removes the map, if it is to be empty."""
    if not after:
        return None
    return {key: None for key in before if key not in after} | {**after}


def plain_tolerations(tolerations: tuple[Toleration, ...]) -> list[dict[str, Any]] | None:
    return [msgspec.to_builtins(one) for one in tolerations] or None


class BatchJobs:
    """The kind, for those who treat all kinds alike (`kinds.job_kind.JobKind`)."""

    framework = "batch/job"
    resource = KINDS["jobs"]
    run_facts = staticmethod(run_facts)
    is_steered = staticmethod(is_steered)
    suspend_patch = staticmethod(suspend_patch)
    clear_start_patch = staticmethod(clear_start_patch)
    restore_patch = staticmethod(restore_patch)
    hold_patch = staticmethod(hold_patch)
    unhold_patch = staticmethod(unhold_patch)

    def pod_sets(self, job: Job) -> tuple[PodSet, ...]:
        text, count, least = job.annotations.get(marks.MIN_PARALLELISM, ""), pod_count(job), min_parallelism(job)
        if text and (least is None or least > count):
            wanted = f"write a number from 1 to {count}, the pods of the Job"
            raise CannotQueue(f'annotation {marks.MIN_PARALLELISM} is "{text}"; {wanted}')
        return pod_sets(job)

    def priority_class(self, job: Job) -> str:
        return job.spec.template.spec.priority_class_name

    def is_elsewhere(self, job: Job) -> bool:
        return job.spec.managed_by not in (None, "", "kubernetes.io/job-controller")

    def count_of_pod_sets(self, job: Job) -> int:
        return 1

    def has_size_of(self, job: Job, workload: Workload, infos: Sequence[PodSetInfo]) -> bool:
        """Only a Job that may shrink is given the number that was admitted."""
        may_shrink = min_parallelism(job) is not None
        return pod_count(job) == (infos[0].count if may_shrink else workload.spec.pod_sets[0].count)

    def spare_pods(self, job: Job, workload: Workload) -> dict[str, int] | None:
        admitted, now = workload.spec.pod_sets[0].count, pod_count(job)
        if job.annotations.get(marks.ELASTIC) != "true" or min_parallelism(job) is not None or now > admitted:
            return None
        return {POD_SET: admitted - now + _reclaimable(job).get(POD_SET, 0)}

    def start_patch(self, job: Job, infos: Sequence[PodSetInfo]) -> Patch:
        return start_patch(job, infos[0])


def _identity(job: AnyJob) -> dict[str, str]:
    """Makes the patch fail if the Job is another one or was changed meanwhile: then it is looked at anew."""
    return {"uid": job.uid, "resourceVersion": job.resource_version}
