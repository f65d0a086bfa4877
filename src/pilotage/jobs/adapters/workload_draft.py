"""The Workload that stands for a job: its name, what it is made of, and whether it still says what the job says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotage.jobs.adapters import marks
from pilotage.model.kueue import PodSet, PriorityClassRef
from pilotage.model.meta import OwnerReference

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
