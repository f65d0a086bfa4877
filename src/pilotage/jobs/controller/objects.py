"""What the watches have brought: the objects that queueing reads, and which of them belong together.

A *subject* is what is reconciled as a whole: a Job, a pod alone, a group of pods, or a workload without an owner.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeVar

from pilotage.jobs.adapters import marks, plain_pods
from pilotage.jobs.adapters.workload_draft import PriorityClasses
from pilotage.model.kueue import ResourceFlavor, Workload
from pilotage.model.pod import Pod
from pilotage.model.policy import Namespace
from pilotage.model.workloads import Job

OwnerT = TypeVar("OwnerT", bound=Hashable)


class ReconcileKey(NamedTuple):
    kind: str
    """Job, Pod, Group, Workload, or the kind of an object that is kept as long as it is needed."""
    key: str


def subject_of_pod(pod: Pod) -> ReconcileKey:
    name = plain_pods.group_of(pod)
    return ReconcileKey("Group", f"{pod.namespace}/{name}") if name else ReconcileKey("Pod", pod.key)


def subject_of_workload(workload: Workload) -> ReconcileKey | None:
    """Who the workload stands for; None if that is somebody whom we do not know how to run."""
    group = workload.labels.get(marks.GROUP_NAME)
    if group:
        return ReconcileKey("Group", f"{workload.namespace}/{group}")
    owner = workload.metadata.controller
    if owner is None:
        return ReconcileKey("Workload", workload.key) if not workload.metadata.owner_references else None
    return ReconcileKey(owner.kind, f"{workload.namespace}/{owner.name}") if owner.kind in ("Job", "Pod") else None


class Objects:
    """All objects by kind and key, and the indexes over them."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[str, Any]] = {}
        self._members: dict[ReconcileKey, dict[str, Pod]] = {}
        self._workloads_of: dict[ReconcileKey, dict[str, None]] = {}
        self._child_jobs: dict[str, dict[str, None]] = {}
        """UID of the owner -> keys."""
        self.classes = PriorityClasses()

    def of(self, kind: str) -> dict[str, Any]:
        return self._by_kind.setdefault(kind, {})

    @property
    def jobs(self) -> dict[str, Job]:
        return self.of("Job")

    @property
    def workloads(self) -> dict[str, Workload]:
        return self.of("Workload")

    @property
    def flavors(self) -> dict[str, ResourceFlavor]:
        return self.of("ResourceFlavor")

    def namespace_labels(self, name: str) -> dict[str, str]:
        found: Namespace | None = self.of("Namespace").get(name)
        return found.labels if found is not None else {}

    def members(self, subject: ReconcileKey) -> list[Pod]:
        return list(self._members.get(subject, {}).values())

    def workloads_of(self, subject: ReconcileKey) -> list[Workload]:
        keys = self._workloads_of.get(subject, {})
        return [self.workloads[key] for key in keys if key in self.workloads]

    def child_jobs(self, uid: str) -> Iterator[Job]:
        """Jobs below one, of all generations. Owners are what people write: they may form a ring."""
        seen, waiting = {uid}, [uid]
        while waiting:
            for key in list(self._child_jobs.get(waiting.pop(), ())):
                job = self.jobs.get(key)
                if job is not None and job.uid not in seen:
                    seen.add(job.uid)
                    waiting.append(job.uid)
                    yield job

    def subjects(self) -> Iterator[ReconcileKey]:
        """Everything that can be reconciled."""
        yield from (ReconcileKey("Job", key) for key in self.jobs)
        yield from self._members
        yield from self._workloads_of

    def put(self, kind: str, obj: Any) -> None:
        old = self.of(kind).get(obj.key)
        if old is not None:
            self._unlink(kind, old)
        self.of(kind)[obj.key] = obj
        self._link(kind, obj)

    def remove(self, kind: str, key: str) -> Any | None:
        old = self.of(kind).pop(key, None)
        if old is not None:
            self._unlink(kind, old)
        return old

    def _link(self, kind: str, obj: Any) -> None:
        if kind == "Pod":
            self._members.setdefault(subject_of_pod(obj), {})[obj.key] = obj
        elif kind == "Workload":
            subject = subject_of_workload(obj)
            if subject is not None:
                self._workloads_of.setdefault(subject, {})[obj.key] = None
        elif kind == "Job":
            if (owner := obj.metadata.controller) is not None and owner.uid != obj.uid:
                self._child_jobs.setdefault(owner.uid, {})[obj.key] = None
        elif kind == "WorkloadPriorityClass":
            self.classes.of_workloads[obj.name] = obj
        elif kind == "PriorityClass":
            self.classes.of_pods[obj.name] = obj

    def _unlink(self, kind: str, obj: Any) -> None:
        if kind == "Pod":
            _drop(self._members, subject_of_pod(obj), obj.key)
        elif kind == "Workload":
            subject = subject_of_workload(obj)
            if subject is not None:
                _drop(self._workloads_of, subject, obj.key)
        elif kind == "Job":
            if (owner := obj.metadata.controller) is not None:
                _drop(self._child_jobs, owner.uid, obj.key)
        elif kind == "WorkloadPriorityClass":
            self.classes.of_workloads.pop(obj.name, None)
        elif kind == "PriorityClass":
            self.classes.of_pods.pop(obj.name, None)


def _drop(index: dict[OwnerT, dict[str, Any]], owner: OwnerT, key: str) -> None:
    entries = index.get(owner)
    if entries is not None:
        entries.pop(key, None)
        if not entries:
            del index[owner]
