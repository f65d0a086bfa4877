"""What the watches have brought: the objects that queueing reads, and which of them belong together.

A *subject* is what is reconciled as a whole: a Job, a pod alone, a group of pods, or a workload without an owner.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeVar

from pilotage.jobs.adapters import marks, plain_pods
from pilotage.jobs.adapters.kinds.job_kind import AnyJob
from pilotage.jobs.adapters.kinds.registry import JobKinds
from pilotage.jobs.adapters.workload_draft import PriorityClasses
from pilotage.model.kueue import ResourceFlavor, Workload
from pilotage.model.pod import Pod
from pilotage.model.policy import Namespace

OwnerT = TypeVar("OwnerT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)


class ReconcileKey(NamedTuple):
    kind: str
    """Job or another kind of jobs, Pod, Group, Workload, or the kind of an object that is kept while it is needed."""
    key: str


def subject_of_pod(pod: Pod) -> ReconcileKey:
    name = plain_pods.group_of(pod)
    return ReconcileKey("Group", f"{pod.namespace}/{name}") if name else ReconcileKey("Pod", pod.key)


class Objects:
    """All objects by kind and key, and the indexes over them."""

    def __init__(self, classes: PriorityClasses | None = None, kinds: JobKinds | None = None) -> None:
        self.kinds = kinds if kinds is not None else JobKinds()
        self._by_kind: dict[str, dict[str, Any]] = {}
        self._members: dict[ReconcileKey, dict[str, Pod]] = {}
        self._workloads_of: dict[ReconcileKey, dict[str, None]] = {}
        self._child_jobs: dict[str, dict[ReconcileKey, None]] = {}
        """By the UID of the owner."""
        self._waiting_for: dict[str, dict[ReconcileKey, None]] = {}
        """By the key of a workload that somebody else makes: the jobs that want it."""
        self.classes = classes or PriorityClasses()

    def of(self, kind: str) -> dict[str, Any]:
        return self._by_kind.setdefault(kind, {})

    def job(self, subject: ReconcileKey) -> AnyJob | None:
        """A job of any kind."""
        found: AnyJob | None = self.of(subject.kind).get(subject.key)
        return found

    def jobs(self) -> Iterator[tuple[ReconcileKey, AnyJob]]:
        """All jobs of all kinds."""
        for kind in self.kinds:
            name = kind.resource.kind
            yield from ((ReconcileKey(name, key), job) for key, job in self.of(name).items())

    def subject_of(self, workload: Workload) -> ReconcileKey | None:
        """The job that the workload stands for; None if it is of a kind that we cannot run."""
        group = workload.labels.get(marks.GROUP_NAME)
        if group:
            return ReconcileKey("Group", f"{workload.namespace}/{group}")
        owner = workload.metadata.controller
        if owner is None:
            return ReconcileKey("Workload", workload.key) if not workload.metadata.owner_references else None
        is_known = owner.kind == "Pod" or self.kinds.owner(owner) is not None
        return ReconcileKey(owner.kind, f"{workload.namespace}/{owner.name}") if is_known else None

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

    def child_jobs(self, uid: str) -> Iterator[tuple[ReconcileKey, AnyJob]]:
        """Jobs below one, of all generations. Owners are what people write: they may form a ring."""
        seen, waiting = {uid}, [uid]
        while waiting:
            for subject in list(self._child_jobs.get(waiting.pop(), ())):
                job = self.job(subject)
                if job is not None and job.uid not in seen:
                    seen.add(job.uid)
                    waiting.append(job.uid)
                    yield subject, job

    def waiting_for(self, workload: Workload) -> list[ReconcileKey]:
        """Jobs that are to have this workload, which somebody else makes."""
        return list(self._waiting_for.get(workload.key, ()))

    def subjects(self) -> Iterator[ReconcileKey]:
        """Everything that can be reconciled."""
        yield from (subject for subject, _ in self.jobs())
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
            subject = self.subject_of(obj)
            if subject is not None:
                self._workloads_of.setdefault(subject, {})[obj.key] = None
        elif kind in self.kinds:
            if (owner := obj.metadata.controller) is not None and owner.uid != obj.uid:
                self._child_jobs.setdefault(owner.uid, {})[ReconcileKey(kind, obj.key)] = None
            if (name := obj.labels.get(marks.PREBUILT_WORKLOAD)) is not None:
                self._waiting_for.setdefault(f"{obj.namespace}/{name}", {})[ReconcileKey(kind, obj.key)] = None
        elif kind == "WorkloadPriorityClass":
            self.classes.of_workloads[obj.name] = obj
        elif kind == "PriorityClass":
            self.classes.of_pods[obj.name] = obj

    def _unlink(self, kind: str, obj: Any) -> None:
        if kind == "Pod":
            _drop(self._members, subject_of_pod(obj), obj.key)
        elif kind == "Workload":
            subject = self.subject_of(obj)
            if subject is not None:
                _drop(self._workloads_of, subject, obj.key)
        elif kind in self.kinds:
            if (owner := obj.metadata.controller) is not None:
                _drop(self._child_jobs, owner.uid, ReconcileKey(kind, obj.key))
            if (name := obj.labels.get(marks.PREBUILT_WORKLOAD)) is not None:
                _drop(self._waiting_for, f"{obj.namespace}/{name}", ReconcileKey(kind, obj.key))
        elif kind == "WorkloadPriorityClass":
            self.classes.of_workloads.pop(obj.name, None)
        elif kind == "PriorityClass":
            self.classes.of_pods.pop(obj.name, None)


def _drop(index: dict[OwnerT, dict[KeyT, Any]], owner: OwnerT, key: KeyT) -> None:
    entries = index.get(owner)
    if entries is not None:
        entries.pop(key, None)
        if not entries:
            del index[owner]
