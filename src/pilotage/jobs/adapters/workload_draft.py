"""The Workload that stands for a job: its name, queue, pod sets, and a priority out of the classes that exist."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pilotage.jobs.adapters import batch_job, marks, plain_pods
from pilotage.jobs.adapters.plain_pods import PodGroup
from pilotage.jobs.pods_ready import TIMEOUT_ANNOTATION, own_timeout
from pilotage.model.kueue import PodSet, PriorityClassRef, WorkloadPriorityClass
from pilotage.model.meta import OwnerReference
from pilotage.model.policy import PriorityClass
from pilotage.model.workloads import Job

_LONGEST_NAME = 253
_HASH_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Priority:
    """How important a workload is, and which class says so."""

    value: int = 0
    source: PriorityClassRef | None = None


@dataclass(frozen=True, slots=True)
class WorkloadDraft:
    """Everything about a workload that follows from its job."""

    namespace: str
    name: str
    queue_name: str
    pod_sets: tuple[PodSet, ...]
    priority: Priority = Priority()
    maximum_execution_seconds: int | None = None
    owners: tuple[OwnerReference, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        """The object to be created."""
        return {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": dict(self.labels),
                **({"annotations": dict(self.annotations)} if self.annotations else {}),
                "ownerReferences": msgspec.to_builtins(self.owners),
                "finalizers": [marks.IN_USE],
            },
            "spec": self.spec(),
        }

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "queueName": self.queue_name,
            "podSets": plain_pod_sets(self.pod_sets),
            "priority": self.priority.value,
        }
        if self.priority.source is not None:
            spec["priorityClassRef"] = msgspec.to_builtins(self.priority.source)
        if self.maximum_execution_seconds is not None:
            spec["maximumExecutionTimeSeconds"] = self.maximum_execution_seconds
        return spec


@dataclass(frozen=True, slots=True)
class DraftProblem:
    """Why no workload can be made for a job."""

    reason: str
    message: str


Drafting = Callable[[], WorkloadDraft | DraftProblem]
"""Called only if the draft is needed: most looks at a job do without."""


def plain_pod_sets(pod_sets: Sequence[PodSet]) -> list[dict[str, Any]]:
    """Pod sets as JSON, with the fields that the schema wants even if they have their defaults."""
    return [{"name": one.name, "count": one.count, **msgspec.to_builtins(one)} for one in pod_sets]


def same_pod_sets(one: Sequence[PodSet], other: Sequence[PodSet]) -> bool:
    # Compared as JSON: templates of pods are of other classes than those of workloads.
    return plain_pod_sets(one) == plain_pod_sets(other)


def workload_name(kind: str, name: str, uid: str) -> str:
    """As `job-train-3f2a1`: the name of the job, and five digits by which a namesake's workload differs."""
    digits = hashlib.sha256(f"{kind}\n{name}\n{uid}".encode()).hexdigest()[:_HASH_DIGITS]
    stem = f"{kind.lower()}-{name}"[: _LONGEST_NAME - _HASH_DIGITS - 1].rstrip("-.")
    return f"{stem}-{digits}"


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
