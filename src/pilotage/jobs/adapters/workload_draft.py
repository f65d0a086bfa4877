"""The Workload that stands for a job: its name, queue, pod sets, and a priority out of the classes that exist."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pilotage.jobs.adapters import marks, plain_pods
from pilotage.jobs.adapters.kinds.job_kind import AnyJob, CannotQueue, JobKind
from pilotage.jobs.adapters.kinds.registry import JOB
from pilotage.jobs.adapters.plain_pods import PodGroup
from pilotage.jobs.cluster_queue import UNSCHEDULABLE_TIMEOUT
from pilotage.jobs.pods_ready import TIMEOUT_ANNOTATION, own_timeout, own_unschedulable_timeout
from pilotage.model.kueue import PodSet, PriorityClassRef, WorkloadPriorityClass, WorkloadSpec
from pilotage.model.meta import OwnerReference
from pilotage.model.names import is_subdomain
from pilotage.model.policy import PriorityClass

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


@dataclass(frozen=True, slots=True)
class Drafting:
    """Called only if the draft is needed: most looks at a job do without."""

    make: Callable[[], WorkloadDraft | DraftProblem]
    has_priority: Callable[[WorkloadSpec], bool] = lambda spec: False
    """Whether a workload has the priority that the draft would have, as far as that can be said without it."""

    def __call__(self) -> WorkloadDraft | DraftProblem:
        return self.make()


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

    def __init__(self, *, may_default: bool = True) -> None:
        """`may_default`: the WorkloadPriorityClass `default` is for all that name none."""
        self.may_default = may_default
        self.of_workloads: dict[str, WorkloadPriorityClass] = {}
        self.of_pods: dict[str, PriorityClass] = {}

    def priority(self, labels: Mapping[str, str], pod_class: str) -> Priority | DraftProblem:
        """By the label or the class `default`, else by the class of the pods, else by the cluster's default."""
        name = self.name_of(labels)
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

    def name_of(self, labels: Mapping[str, str]) -> str:
        """The WorkloadPriorityClass that counts; "" if none does."""
        default = marks.DEFAULT_PRIORITY_CLASS if self.has_default else ""
        return labels.get(marks.PRIORITY_CLASS, "") or default

    @property
    def has_default(self) -> bool:
        return self.may_default and marks.DEFAULT_PRIORITY_CLASS in self.of_workloads

    def agrees_with(self, labels: Mapping[str, str], spec: WorkloadSpec) -> bool:
        """Whether a workload still has the priority that its WorkloadPriorityClass gives."""
        known, name = spec.priority_class_ref, self.name_of(labels)
        if (known.name if known is not None and known.kind == "WorkloadPriorityClass" else "") != name:
            return False
        return not name or (name in self.of_workloads and self.of_workloads[name].value == (spec.priority or 0))

    def _default(self) -> PriorityClass | None:
        """Of several defaults the lowest counts, as for pods."""
        defaults = [one for one in self.of_pods.values() if one.global_default]
        return min(defaults, key=lambda one: (one.value, one.name), default=None)


def job_draft(
    job: AnyJob, classes: PriorityClasses, queue_name: str, kind: JobKind = JOB
) -> WorkloadDraft | DraftProblem:
    resource = kind.resource
    try:
        pod_sets = kind.pod_sets(job)
        priority = classes.priority(job.labels, kind.priority_class(job))
    except CannotQueue as error:
        return DraftProblem("ErrWorkloadCompose", str(error))
    if isinstance(priority, DraftProblem):
        return priority
    if (problem := _common_problem(queue_name, job.annotations)) is not None:
        return problem
    return WorkloadDraft(
        namespace=job.namespace,
        name=workload_name(resource.kind, job.name, job.uid),
        queue_name=queue_name,
        pod_sets=pod_sets,
        priority=priority,
        maximum_execution_seconds=_seconds(job.labels),
        owners=(
            OwnerReference(
                resource.api_version, resource.kind, job.name, job.uid, controller=True, block_owner_deletion=True
            ),
        ),
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
    queue_name = first.labels.get(marks.QUEUE_NAME, "")
    if (problem := _common_problem(queue_name, first.annotations)) is not None:
        return problem
    owners: tuple[OwnerReference, ...] = ()
    labels = {marks.GROUP_NAME: members.name}
    if not members.name:
        owners = (OwnerReference("v1", "Pod", first.name, first.uid, controller=True, block_owner_deletion=True),)
        labels = {marks.JOB_UID: first.uid}
    return WorkloadDraft(
        namespace=first.namespace,
        name=group_workload_name(members),
        queue_name=queue_name,
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
    return {name: annotations[name] for name in (TIMEOUT_ANNOTATION, UNSCHEDULABLE_TIMEOUT) if name in annotations}


def _common_problem(queue_name: str, annotations: Mapping[str, str]) -> DraftProblem | None:
    if not is_subdomain(queue_name):
        text = f'label {marks.QUEUE_NAME} is "{queue_name}", which cannot be the name of a LocalQueue'
        return DraftProblem("ErrWorkloadCompose", text)
    return _timeout_problem(annotations)


def _timeout_problem(annotations: Mapping[str, str]) -> DraftProblem | None:
    for name, read in ((TIMEOUT_ANNOTATION, own_timeout), (UNSCHEDULABLE_TIMEOUT, own_unschedulable_timeout)):
        try:
            read(annotations)
        except ValueError:
            text = f'annotation {name} is "{annotations[name]}"; write a duration such as 10m'
            return DraftProblem("ErrWorkloadCompose", text)
    return None


def with_labels(drafting: Drafting, labels: Mapping[str, str]) -> Drafting:
    """The same drafts with more labels."""

    def draft() -> WorkloadDraft | DraftProblem:
        made = drafting()
        return made if isinstance(made, DraftProblem) else replace(made, labels={**labels, **made.labels})

    return replace(drafting, make=draft)
