"""The stage of queueing scenarios: the engine, an API in memory, and jobs that follow their workloads.

A bare workload has an implied job: it starts when admitted, says that it is ready when the scenario says so, and its
pods are gone as soon as it is evicted, or (`eviction: manual`) when the scenario says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from pilotage.clock import rfc3339
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import Counted, Deactivate, Event, Labels, StatusChanged
from pilotage.jobs.engine import JobQueueing, QueueingObject
from pilotage.jobs.room_on_nodes import NodeRoom
from pilotage.model.kueue import (
    AdmissionCheckState,
    ReclaimablePod,
    ResourceFlavor,
    Workload,
    WorkloadPriorityClass,
    WorkloadStatus,
)
from pilotage.rng import seeded
from pilotage.simulate.queueing_api import QueueingApi
from pilotage.simulate.queueing_file import Named
from pilotage.simulate.queueing_jobs import QueuedJob
from pilotage.simulate.queueing_objects import NAMESPACE, made, manifest, read
from pilotage.testing.virtual_clock import VirtualClock

Json = dict[str, Any]
_TURNS_WITHOUT_END: Final = 10_000


class NeverSettles(Exception):
    """Something changes for ever although no time passes."""


class QueueingStage:
    def __init__(
        self, configuration: QueueingConfiguration, room: NodeRoom | None = None, api: QueueingApi | None = None
    ) -> None:
        """`room`: on the nodes of a cluster; without it nothing is known of nodes."""
        self.configuration = configuration
        self._room = room
        self._api = api or QueueingApi()
        self.clock = VirtualClock()
        self._start = self.clock.time()
        self.engine = JobQueueing(self.clock, seeded(0), configuration, room)
        self.workloads: dict[str, Workload] = {}
        """As the API has them, by key."""
        self.jobs: dict[str, QueuedJob] = {}
        self.events: set[tuple[str, str]] = set()
        self.counts: Counter[tuple[str, Labels]] = Counter()
        self.reserved: list[str] = []
        """Who got quota, in order, since that was last asked."""
        self._fields: dict[tuple[str, str], Json] = {}
        self._flavors: dict[str, ResourceFlavor] = {}
        self._classes: dict[str, WorkloadPriorityClass] = {}
        self._is_manual: set[str] = set()
        self._job_of: dict[str, QueuedJob] = {}
        self.engine.set_namespace(NAMESPACE, {})

    def objects(self) -> Iterator[QueueingObject]:
        """Queues and everything else that administrators make."""
        for (kind, _), fields in self._fields.items():
            if kind not in ("namespace", "job", "workload", "priorityClass"):
                obj = made(kind, fields)
                assert not isinstance(obj, WorkloadPriorityClass)
                yield obj

    def now(self) -> float:
        """Seconds since the scenario began."""
        return self.clock.monotonic()

    def since_start(self, epoch: float) -> int:
        return int(epoch - self._start)

    # --- names --------------------------------------------------------------------------------------------------------

    def key(self, name: str) -> str:
        """Of the workload that the scenario calls so."""
        if name.startswith("job/"):
            return self.jobs[name.removeprefix("job/")].workload_key
        return f"{NAMESPACE}/{name}" if f"{NAMESPACE}/{name}" in self.workloads else self._elsewhere(name)

    def _elsewhere(self, name: str) -> str:
        return next((key for key in self.workloads if key.endswith(f"/{name}")), f"{NAMESPACE}/{name}")

    def shown(self, key: str) -> str:
        """What the scenario calls a workload."""
        job = self._job_of.get(key)
        return f"job/{job.name}" if job is not None else key.partition("/")[2]

    # --- what users do ------------------------------------------------------------------------------------------------

    def apply(self, item: Named) -> None:
        fields = dict(item.fields)
        if item.kind == "workload":
            fields["createdEpoch"] = self._start + fields.get("createdAt", self.now())
            if fields.get("eviction") == "manual":
                self._is_manual.add(f"{item.namespace}/{item.name}")
        self._fields[item.kind, item.name] = fields
        self._put(item.kind, item.name, self._api.create)

    def patch(self, item: Named) -> None:
        self._fields[item.kind, item.name] |= item.fields
        self._put(item.kind, item.name, self._api.update)

    def _put(self, kind: str, name: str, write: Callable[[Json], Json]) -> None:
        fields = self._fields[kind, name]
        if kind == "namespace":
            self.engine.set_namespace(name, fields.get("labels", {}))
        elif kind == "job":
            self._add_job(fields)
        else:
            obj = read(kind, write(manifest(kind, fields)))
            if isinstance(obj, WorkloadPriorityClass):
                self._classes[name] = obj
                return
            if isinstance(obj, ResourceFlavor):
                self._flavors[name] = obj
            if isinstance(obj, Workload):
                known = self.workloads.get(obj.key)
                obj = obj if known is None else msgspec.structs.replace(obj, status=known.status)
                self.workloads[obj.key] = obj
            self.engine.upsert(obj)

    def _add_job(self, fields: Json) -> None:
        job = self.jobs[fields["name"]] = QueuedJob(fields, self._api)
        if job.is_queued:
            made = self._api.create(job.workload(self._classes, rfc3339(self.clock.time())))
            workload = msgspec.convert(made, Workload)
            self.workloads[workload.key] = workload
            self._job_of[workload.key] = job
            if fields.get("eviction") == "manual":
                self._is_manual.add(workload.key)
            self.events.add((f"job/{job.name}", "CreatedWorkload"))
            self.engine.upsert(workload)

    def delete(self, item: Named) -> None:
        fields = self._fields.pop((item.kind, item.name))
        if item.kind == "job":
            job = self.jobs.pop(item.name)
            self._api.delete("Job", NAMESPACE, item.name)
            if job.is_queued:
                self._delete_workload(job.workload_key)
        elif item.kind == "workload":
            self._delete_workload(f"{item.namespace}/{item.name}")
        elif item.kind == "namespace":
            self.engine.delete_namespace(item.name)
        else:
            obj = made(item.kind, fields)
            self._api.delete(type(obj).__name__, obj.namespace, obj.name)
            if not isinstance(obj, WorkloadPriorityClass):
                self.engine.delete(obj)

    def _delete_workload(self, key: str) -> None:
        workload = self.workloads.pop(key)
        self._api.delete("Workload", workload.namespace, workload.name)
        self.engine.delete(workload)

    # --- what other components do -------------------------------------------------------------------------------------

    def write_check(self, value: Json) -> None:
        workload = self.workloads[self.key(value["workload"])]
        checks = []
        for check in workload.status.admission_checks:
            if check.name == value["name"]:
                check = AdmissionCheckState(
                    name=check.name,
                    state=value["state"],
                    last_transition_time=rfc3339(self.clock.time()),
                    requeue_after_seconds=value.get("requeueAfterSeconds"),
                    retry_count=check.retry_count,
                )
            checks.append(check)
        if not any(check.name == value["name"] for check in checks):
            raise LookupError(f"{value['workload']} has no admission check {value['name']}")
        self._write(workload, msgspec.structs.replace(workload.status, admission_checks=tuple(checks)))

    def reclaim(self, name: str, count: int) -> None:
        workload = self.workloads[self.key(name)]
        pods = (ReclaimablePod(workload.spec.pod_sets[0].name, count),)
        self._write(workload, msgspec.structs.replace(workload.status, reclaimable_pods=pods))

    def _write(self, workload: Workload, status: WorkloadStatus) -> None:
        changed = self._api.write_status(workload, status)
        self.workloads[workload.key] = changed
        self.engine.upsert(changed)

    # --- time ---------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        target = self.now() + seconds
        while (due := self.engine.next_due()) is not None and self.since_start(due) <= target:
            self.clock.step(max(0.0, self.since_start(due) - self.now()))
            self.engine.fire_timers()
            self.settle()
        self.clock.step(target - self.now())

    def settle(self) -> None:
        """Cycles and controllers, until nothing changes."""
        for _ in range(_TURNS_WITHOUT_END):
            has_more = self.engine.cycle()
            if self._room is not None and self._room.take_changes()[0]:
                self.engine.nodes_changed()
                has_more = True
            if not self._perform() and not has_more:
                return
        raise NeverSettles("the queues change for ever although no time passes")

    def _perform(self) -> bool:
        """Do what the engine wants done. Whether there was anything to do that it has to hear of."""
        news = False
        for effect in self.engine.take_effects():
            match effect:
                case StatusChanged():
                    news |= self._status_written(effect.workload)
                case Deactivate(key):
                    self._deactivate(key)
                    news = True
                case Event():
                    self.events.add((self.shown(effect.key), effect.reason))
                    if effect.reason == "QuotaReserved":
                        self.reserved.append(self.shown(effect.key))
                case Counted():
                    self.counts[effect.metric, effect.labels] += int(effect.amount)
        return news

    def _status_written(self, workload: Workload) -> bool:
        key = workload.key
        written = self._api.write_status(self.workloads[key], workload.status)
        self.workloads[key] = written
        self.engine.upsert(written)
        job = self._job_of.get(key)
        if job is not None:
            self._steer(job, written)
        is_leaving = is_true(written, "Evicted") and is_true(written, "QuotaReserved")
        if is_leaving and key not in self._is_manual:
            self.engine.pods_gone(key)
            return True
        return False

    def _steer(self, job: QueuedJob, workload: Workload) -> None:
        may_run = is_true(workload, "Admitted") and not is_true(workload, "Evicted")
        is_suspended = job.job.spec.suspend
        if may_run and is_suspended:
            job.start(workload, self._flavors)
            self.events.add((f"job/{job.name}", "Started"))
        elif not may_run and not is_suspended:
            job.stop(workload)
            self.events.add((f"job/{job.name}", "Stopped"))

    def _deactivate(self, key: str) -> None:
        workload = self.workloads[key]
        changed = self.workloads[key] = self._api.deactivate(workload)
        fields = self._fields.get(("workload", workload.name))
        if fields is not None:
            fields["active"] = False
        self.engine.upsert(changed)


def is_true(workload: Workload, kind: str) -> bool:
    return any(one.type == kind and one.status == "True" for one in workload.status.conditions)
