"""From a job to the workload that stands for it: queue, pod sets, and a priority out of the classes that exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pilotage.jobs.adapters import batch_job, marks, plain_pods
from pilotage.jobs.adapters.plain_pods import PodGroup
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, Priority, WorkloadDraft, workload_name
from pilotage.jobs.pods_ready import TIMEOUT_ANNOTATION, own_timeout
from pilotage.model.kueue import PriorityClassRef, WorkloadPriorityClass
from pilotage.model.meta import OwnerReference
from pilotage.model.policy import PriorityClass
from pilotage.model.workloads import Job


class PriorityClasses:
    """The classes that give workloads their priority."""

    def __init__(self) -> None:
        self.of_workloads: dict[str, WorkloadPriorityClass] = {}
        self.of_pods: dict[str, PriorityClass] = {}

    def priority(self, labels: Mapping[str, str], pod_class: str) -> Priority | DraftProblem:
        """By the label, else by the class of the pods, else by the cluster's default."""
        name = labels.get(marks.PRIORITY_CLASS, "")
        if name:
            found = self.of_workloads.get(name)
            if found is None:
                text = f'there is no WorkloadPriorityClass "{name}"; create it or change the label'
                return DraftProblem("WorkloadPriorityClassNotFound", text)
            return Priority(found.value, PriorityClassRef("kueue.x-k8s.io", "WorkloadPriorityClass", name))
        chosen = self.of_pods.get(pod_class) if pod_class else self._default()
        if chosen is None:
            return Priority()
        return Priority(chosen.value, PriorityClassRef("scheduling.k8s.io", "PriorityClass", chosen.name))

    def _default(self) -> PriorityClass | None:
        """Of several defaults the lowest counts, as for pods."""
        defaults = [one for one in self.of_pods.values() if one.global_default]
        return min(defaults, key=lambda one: (one.value, one.name), default=None)


def job_workload_name(job: Job) -> str:
    return workload_name(batch_job.KIND, job.name, job.uid)


def job_draft(job: Job, classes: PriorityClasses, queue_name: str) -> WorkloadDraft | DraftProblem:
    template = job.spec.template
    priority = classes.priority(job.labels, template.spec.priority_class_name)
    if isinstance(priority, DraftProblem):
        return priority
    if (problem := _timeout_problem(job.annotations)) is not None:
        return problem
    return WorkloadDraft(
        namespace=job.namespace,
        name=job_workload_name(job),
        queue_name=queue_name,
        pod_sets=batch_job.pod_sets(job),
        priority=priority,
        maximum_execution_seconds=_seconds(job.labels),
        owners=(OwnerReference("batch/v1", "Job", job.name, job.uid, controller=True, block_owner_deletion=True),),
        labels={marks.JOB_UID: job.uid},
        annotations=_copied(job.annotations),
    )


def group_workload_name(members: PodGroup) -> str:
    first = members.pods[0]
    return members.name or workload_name("Pod", first.name, first.uid)


def group_draft(members: PodGroup, classes: PriorityClasses) -> WorkloadDraft | DraftProblem:
    first = members.pods[0]
    priority = classes.priority(first.labels, first.spec.priority_class_name)
    if isinstance(priority, DraftProblem):
        return priority
    if (problem := _timeout_problem(first.annotations)) is not None:
        return problem
    owners: tuple[OwnerReference, ...] = ()
    labels = {marks.GROUP_NAME: members.name}
    if not members.name:
        owners = (OwnerReference("v1", "Pod", first.name, first.uid, controller=True, block_owner_deletion=True),)
        labels = {marks.JOB_UID: first.uid}
    return WorkloadDraft(
        namespace=first.namespace,
        name=group_workload_name(members),
        queue_name=first.labels.get(marks.QUEUE_NAME, ""),
        pod_sets=plain_pods.pod_sets(members),
        priority=priority,
        maximum_execution_seconds=_seconds(first.labels),
        owners=owners,
        labels=labels,
        annotations=_copied(first.annotations),
    )


def _seconds(labels: Mapping[str, str]) -> int | None:
    text = labels.get(marks.MAX_EXECUTION_SECONDS, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _copied(annotations: Mapping[str, str]) -> dict[str, str]:
    return {name: annotations[name] for name in (TIMEOUT_ANNOTATION,) if name in annotations}


def _timeout_problem(annotations: Mapping[str, str]) -> DraftProblem | None:
    try:
        own_timeout(annotations)
    except ValueError:
        text = f'annotation {TIMEOUT_ANNOTATION} is "{annotations[TIMEOUT_ANNOTATION]}"; write a duration such as 10m'
        return DraftProblem("ErrWorkloadCompose", text)
    return None


def with_labels(drafting: Drafting, labels: Mapping[str, str]) -> Drafting:
    """The same drafts with more labels."""

    def draft() -> WorkloadDraft | DraftProblem:
        made = drafting()
        return made if isinstance(made, DraftProblem) else replace(made, labels={**labels, **made.labels})

    return draft
