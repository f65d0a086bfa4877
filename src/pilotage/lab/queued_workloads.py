"""Workload queueing in a simulation: workloads of the trace wait for quota; pods are made of those that are admitted.

    workload comes -> waits -> admitted: its pods come -> all of them have ended -> finished
                        ^         |
                        +- evicted: its pods are gone at once

What the trace says of the pods of such a job is what another admission led to: they are left out, and pods are made of
the Job's template, or of the workload's pod sets, when it is admitted here. `runs` beside the workload is how long each
of them runs. Admission checks pass at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from pilotage.clock import Clock
from pilotage.jobs.adapters.pod_set_info import PodSetConflict, PodSetInfo, pod_set_infos
from pilotage.jobs.conditions import ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import Deactivate, StatusChanged
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import FOR_THE_ENGINE
from pilotage.lab.trace.format import ObjectName
from pilotage.model import Pod
from pilotage.model.kinds import kind_of
from pilotage.model.kueue import Workload, WorkloadStatus
from pilotage.rng import seeded
from pilotage.simulate.memory_api import Json, Key

KINDS: Final = frozenset({"Namespace", "Job", "WorkloadPriorityClass", *FOR_THE_ENGINE})
"""What queueing reads of a trace."""
_ALONE: Final = KINDS - {"Namespace", "RuntimeClass", "LimitRange", "Job"}
_MOST_TURNS: Final = 10_000

Owner = tuple[str, str, str]
"""Kind, namespace and name of a job."""


class WorkloadStory(msgspec.Struct, omit_defaults=True):
    """What became of one workload. Times are seconds since the start of the trace."""

    workload: str
    """ "namespace/name"."""
    queue: str
    arrived: float
    priority: int = 0
    owner: str | None = None
    """Its job, as "Kind/name"."""
    cluster_queue: str | None = None
    admitted: float | None = None
    """For the first time."""
    flavors: tuple[str, ...] = ()
    evictions: int = 0
    ended: float | None = None
    end: str | None = None
    """How: finished, deleted, failed; None if it was there to the last."""
    reason: str | None = None
    """Why it waits, or waited last."""


class PodMaker(Protocol):
    """Whoever has the pods of the cluster."""

    def start_pod(self, document: Json, runs: float | None) -> Key | None:
        """A pod comes; None if there is one of its name."""

    def stop_pod(self, origin: Key) -> None:
        """A pod is gone at once, and does not come again."""


class _Queued(msgspec.Struct, eq=False):
    """A workload that is there."""

    story: WorkloadStory
    runs: float | None
    owner: Owner | None
    unbound: set[Key] = msgspec.field(default_factory=set)
    pods: set[Key] = msgspec.field(default_factory=set)
    """Those that have not ended, by the names that they came with."""
    is_running: bool = False


class QueuedWorkloads:
    """The queues of a simulation. `tell` is called with each finished story."""

    def __init__(
        self,
        clock: Clock,
        configuration: QueueingConfiguration | None,
        maker: PodMaker,
        tell: Callable[[WorkloadStory], None],
        seed: int,
    ) -> None:
        self._clock = clock
        self._maker = maker
        self._tell = tell
        self._engine = JobQueueing(clock, seeded(seed), configuration or QueueingConfiguration())
        self._is_used = False
        self._objects: dict[tuple[str, str], Any] = {}
        """By kind and key, what the engine got."""
        self._templates: dict[Owner, Json] = {}
        self._queued: dict[str, _Queued] = {}
        self._of_owner: dict[Owner, str] = {}
        self._of_pod: dict[Key, str] = {}
        self._namespaces: set[str] = set()
        self.left_out = 0
        """Pods of the trace that belong to queued jobs."""

    # --- what the trace says -----------------------------------------------------------------------------------

    def put(self, name: ObjectName, obj: Json, runs: float | None) -> bool:
        """An object comes or changes; whether nobody but queueing reads its kind. DecodeError if it is none."""
        if name.kind == "Namespace":
            self._namespaces.add(name.name)
            self._engine.set_namespace(name.name, obj["metadata"].get("labels") or {})
            return False
        if name.kind == "Job":
            self._templates.setdefault((name.kind, name.namespace, name.name), obj["spec"].get("template") or {})
            return False
        kind = kind_of(name.kind)
        if kind is None or name.kind not in KINDS:
            return False
        metadata = {"uid": f"{name.kind} {name.namespace} {name.name}", **obj["metadata"]}
        decoded = kind.decode(msgspec.json.encode({**obj, "metadata": metadata}))
        if isinstance(decoded, Workload):
            self._put_workload(decoded, runs)
        elif name.kind in FOR_THE_ENGINE:
            self._objects[name.kind, decoded.key] = decoded
            self._engine.upsert(decoded)
        return name.kind in _ALONE

    def drop(self, name: ObjectName) -> bool:
        """An object goes; whether nobody but queueing reads its kind."""
        key = f"{name.namespace}/{name.name}" if name.namespace else name.name
        if name.kind == "Workload":
            self._drop_workload(key)
        elif (obj := self._objects.pop((name.kind, key), None)) is not None:
            self._engine.delete(obj)
        return name.kind in _ALONE

    def _drop_workload(self, key: str) -> None:
        if (queued := self._queued.get(key)) is not None:
            self._stop(queued)
            self._end(key, "deleted")
        if (known := self._engine.workload(key)) is not None:
            self._engine.delete(known)
            if (owner := _owner(known)) is not None and self._of_owner.get(owner) == key:
                del self._of_owner[owner]

    def owns(self, pod: Pod) -> bool:
        """Does a pod of the trace belong to a job that is queued here?"""
        owner = pod.controller
        known = owner is not None and (owner.kind, pod.namespace, owner.name) in self._of_owner
        self.left_out += known
        return known

    def _put_workload(self, workload: Workload, runs: float | None) -> None:
        key = workload.key
        if workload.namespace not in self._namespaces:
            self._namespaces.add(workload.namespace)
            self._engine.set_namespace(workload.namespace, {})
        known = self._engine.workload(key)
        if known is not None:
            metadata = replace(workload.metadata, uid=known.uid, creation_timestamp=known.metadata.creation_timestamp)
            self._engine.upsert(replace(workload, metadata=metadata, status=known.status))
            return
        self._is_used = True
        story = WorkloadStory(key, workload.spec.queue_name, self._clock.monotonic(), workload.spec.priority or 0)
        owner = _owner(workload)
        if owner is not None:
            story.owner = f"{owner[0]}/{owner[2]}"
            self._of_owner[owner] = key
        self._queued[key] = _Queued(story, runs, owner)
        self._engine.upsert(replace(workload, status=WorkloadStatus()))

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was seen so far that has to do with queueing."""
        return not (self._is_used or self._templates or {kind for kind, _ in self._objects} & _ALONE)

    # --- what becomes of pods ----------------------------------------------------------------------------------

    def pod_bound(self, origin: Key) -> None:
        """A pod, by the name that it came with, has a node."""
        if (key := self._of_pod.get(origin)) is not None:
            queued = self._queued[key]
            queued.unbound.discard(origin)
            if not queued.unbound and queued.is_running:
                self._engine.pods_ready(key, True)

    def pod_gone(self, origin: Key) -> None:
        """A pod has ended, and does not come again."""
        if (key := self._of_pod.pop(origin, None)) is not None:
            queued = self._queued[key]
            queued.pods.discard(origin)
            queued.unbound.discard(origin)
            if not queued.pods and queued.is_running:
                queued.is_running = False
                self._engine.finished(key, "Succeeded", "")

    # --- time --------------------------------------------------------------------------------------------------

    @property
    def next_due(self) -> float:
        """When the next timer of the queues fires, in seconds since the start."""
        due = self._engine.next_due() if self._is_used else None
        return math.inf if due is None else self._clock.monotonic() + max(0.0, due - self._clock.time())

    def settle(self) -> bool:
        """Admit and evict until nothing changes; whether there was anything to do."""
        if not self._is_used:
            return False
        self._engine.fire_timers()
        has_worked = False
        for _ in range(_MOST_TURNS):
            has_more = self._engine.cycle()
            has_changed = self._perform()
            has_worked |= has_changed
            if not has_changed and not has_more:
                break
        return has_worked

    def close(self) -> None:
        """Tell of those who are there to the last."""
        for queued in self._queued.values():
            self._tell(queued.story)

    def _perform(self) -> bool:
        has_changed = False
        for effect in self._engine.take_effects():
            if isinstance(effect, StatusChanged):
                has_changed |= self._follow(effect.workload)
            elif isinstance(effect, Deactivate) and (known := self._engine.workload(effect.key)) is not None:
                self._engine.upsert(replace(known, spec=replace(known.spec, active=False)))
                has_changed = True
        return has_changed

    def _follow(self, workload: Workload) -> bool:
        """What the job does, and others do, when the status says so; whether the engine is to look again."""
        queued = self._queued.get(workload.key)
        if queued is None:
            return False
        conditions = {one.type: one for one in workload.status.conditions}
        is_true = {kind for kind, one in conditions.items() if one.status == "True"}
        if FINISHED in is_true:
            self._stop(queued)
            self._end(workload.key, "finished" if conditions[FINISHED].reason == "Succeeded" else "failed")
            return True
        if EVICTED in is_true and QUOTA_RESERVED in is_true:
            queued.story.evictions += 1
            self._stop(queued)
            self._engine.pods_gone(workload.key)
            return True
        if ADMITTED in is_true:
            return not queued.is_running and self._start(queued, workload)
        if QUOTA_RESERVED not in is_true:
            reserved = conditions.get(QUOTA_RESERVED)
            queued.story.reason = None if reserved is None else f"{reserved.reason}: {reserved.message}"
            return False
        return self._pass_checks(workload)

    def _pass_checks(self, workload: Workload) -> bool:
        checks = workload.status.admission_checks
        if all(check.state == "Ready" for check in checks):
            return False
        ready = tuple(replace(check, state="Ready") for check in checks)
        self._engine.upsert(replace(workload, status=replace(workload.status, admission_checks=ready)))
        return True

    # --- pods --------------------------------------------------------------------------------------------------

    def _start(self, queued: _Queued, workload: Workload) -> bool:
        flavors = {key: obj for (kind, key), obj in self._objects.items() if kind == "ResourceFlavor"}
        infos = pod_set_infos(workload, flavors)
        if isinstance(infos, PodSetConflict):
            self._engine.finished(workload.key, "FailedToStart", infos.message)
            return True
        admission, story = workload.status.admission, queued.story
        assert admission is not None, "it is admitted"
        story.cluster_queue = admission.cluster_queue
        story.flavors = tuple(sorted({one for each in admission.pod_set_assignments for one in each.flavors.values()}))
        story.admitted = self._clock.monotonic() if story.admitted is None else story.admitted
        queued.is_running = True
        for document in self._documents(queued, workload, infos):
            origin = self._maker.start_pod(document, queued.runs)
            if origin is not None:
                queued.pods.add(origin)
                queued.unbound.add(origin)
                self._of_pod[origin] = workload.key
        if not queued.pods:
            queued.is_running = False
            self._engine.finished(workload.key, "Succeeded", "it has no pods")
        return True

    def _documents(self, queued: _Queued, workload: Workload, infos: list[PodSetInfo]) -> Iterator[Json]:
        controller = workload.metadata.controller
        owner: Json = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": workload.name}
        if controller is not None:
            owner = {"apiVersion": controller.api_version, "kind": controller.kind, "name": controller.name}
        job = self._templates.get(queued.owner) if queued.owner is not None else None
        for pod_set, info in zip(workload.spec.pod_sets, infos, strict=True):
            # A Job's own template knows more than what its workload keeps of it.
            is_whole = job is not None and len(infos) == 1
            template: Json = job if is_whole and job is not None else msgspec.to_builtins(pod_set.template)
            spec, metadata = dict(template.get("spec") or {}), template.get("metadata") or {}
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **info.node_selector}
            spec["tolerations"] = [*(spec.get("tolerations") or ()), *msgspec.to_builtins(info.tolerations)]
            name = owner["name"] if len(infos) == 1 else f"{owner['name']}-{info.name}"
            for number in range(info.count):
                yield {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"{name}-{number}",
                        "namespace": workload.namespace,
                        "labels": {**(metadata.get("labels") or {}), **info.labels},
                        "annotations": {**(metadata.get("annotations") or {}), **info.annotations},
                        "ownerReferences": [{**owner, "uid": workload.uid, "controller": True}],
                    },
                    "spec": spec,
                }

    def _stop(self, queued: _Queued) -> None:
        queued.is_running = False
        for origin in sorted(queued.pods):
            self._of_pod.pop(origin, None)
            self._maker.stop_pod(origin)
        queued.pods.clear()
        queued.unbound.clear()

    def _end(self, key: str, how: str) -> None:
        queued = self._queued.pop(key)
        queued.story.ended, queued.story.end = self._clock.monotonic(), how
        self._tell(queued.story)


def _owner(workload: Workload) -> Owner | None:
    controller = workload.metadata.controller
    return None if controller is None else (controller.kind, workload.namespace, controller.name)
