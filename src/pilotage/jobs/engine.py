"""The engine of workload queueing. How it is used, and what the shell must keep to, is told in `surface`.

The parts: `world` keeps the objects, `queueing` and `pending` who waits, `lifecycle` the books, `stopping` what ends a
reservation, `workloads` what others change, `reconfiguration` what administrators change, `pod_rules` what the API
server makes of pods, `admission` the scheduling cycle (with `assignment`, `preemption`, `fair_sharing` over the `quota`
trees), `reporting` answers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pilotage.clock import Clock
from pilotage.jobs import conditions as c
from pilotage.jobs.admission import AdmissionCycle
from pilotage.jobs.admission_shares import AdmissionShares
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import Effect
from pilotage.jobs.invariants import check_invariants
from pilotage.jobs.lifecycle import Lifecycle
from pilotage.jobs.queue_lines import QueueLines, Window
from pilotage.jobs.queueing import Queueing
from pilotage.jobs.reconfiguration import Reconfiguration
from pilotage.jobs.record import WorkloadPlace, WorkloadRecord
from pilotage.jobs.reporting import Reporting
from pilotage.jobs.reports import (
    ClusterQueueReport,
    LocalQueueReport,
    PendingWorkload,
    QueueLine,
    UnadmittedCount,
    WorkloadReport,
)
from pilotage.jobs.status import with_status
from pilotage.jobs.stopping import Stopping
from pilotage.jobs.tallies import QueueTallies
from pilotage.jobs.workloads import Workloads
from pilotage.jobs.world import World
from pilotage.model.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    QueueStatus,
    ResourceFlavor,
    Workload,
)
from pilotage.model.limit_ranges import LimitRange
from pilotage.model.policy import RuntimeClass

QueueingObject = (
    ClusterQueue | LocalQueue | Cohort | ResourceFlavor | AdmissionCheck | Workload | LimitRange | RuntimeClass
)


class JobQueueing:
    def __init__(self, clock: Clock, rng: random.Random, configuration: QueueingConfiguration) -> None:
        self._world = world = World(clock, configuration)
        self._queueing = Queueing(world)
        self._lifecycle = Lifecycle(world, self._queueing)
        self._stopping = Stopping(world, self._queueing, self._lifecycle, rng)
        self._reconfiguration = Reconfiguration(world, self._queueing, self._lifecycle, self._stopping)
        self._workloads = Workloads(
            world, self._queueing, self._lifecycle, self._stopping, self._reconfiguration.unassigned
        )
        self._admission = AdmissionCycle(world, self._queueing, self._lifecycle)
        self._reporting = Reporting(world)
        self._lines = QueueLines(world)
        self._tallies = QueueTallies(world)

    # --- what happens -------------------------------------------------------------------------------------------------

    def upsert(self, obj: QueueingObject) -> None:
        """An object was created or changed."""
        change = self._reconfiguration
        match obj:
            case Workload():
                change.apply()
                self._world.inspected = obj
                self._workloads.upsert(obj)
                self._world.inspected = None
            case ClusterQueue():
                change.set_queue(obj)
            case LocalQueue():
                change.set_local_queue(obj)
            case Cohort():
                change.set_cohort(obj)
            case ResourceFlavor():
                change.set_flavor(obj)
            case AdmissionCheck():
                change.set_check(obj)
            case LimitRange():
                change.apply()
                self._workloads.reshape(self._world.pod_rules.set_limit_range(obj))
            case RuntimeClass():
                change.apply()
                self._workloads.reshape(self._world.pod_rules.set_class(obj))

    def delete(self, obj: QueueingObject) -> None:
        """An object is gone."""
        change = self._reconfiguration
        match obj:
            case Workload():
                change.apply()
                self._workloads.delete(obj.key)
                self._world.inspected = None
            case ClusterQueue():
                change.delete_queue(obj.name)
            case LocalQueue():
                change.delete_local_queue(obj.key)
            case Cohort():
                change.delete_cohort(obj.name)
            case ResourceFlavor():
                change.delete_flavor(obj.name)
            case AdmissionCheck():
                change.delete_check(obj.name)
            case LimitRange():
                change.apply()
                self._workloads.reshape(self._world.pod_rules.delete_limit_range(obj))
            case RuntimeClass():
                change.apply()
                self._workloads.reshape(self._world.pod_rules.delete_class(obj))

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace has these labels."""
        self._reconfiguration.set_namespace(name, dict(labels))

    def delete_namespace(self, name: str) -> None:
        self._world.namespaces.pop(name, None)

    def pods_ready(self, key: str, is_ready: bool) -> None:
        """Whether all pods of the workload's job are ready or succeeded."""
        self._reconfiguration.apply()
        with self._looking_at(key) as record:
            if record is not None:
                self._stopping.note_readiness(record, is_ready)

    def pods_gone(self, key: str) -> None:
        """The stopped job of an evicted workload has no pods left: the eviction is complete. May be said again."""
        self._reconfiguration.apply()
        with self._looking_at(key) as record:
            if record is not None:
                self._lifecycle.complete(record)

    def finished(self, key: str, reason: str, message: str) -> None:
        """The job ended: Succeeded, Failed, OutOfSync, OwnerNotFound or FailedToStart."""
        self._reconfiguration.apply()
        with self._looking_at(key) as record:
            if record is not None:
                self._lifecycle.finish(record, reason, message)

    def write_rejected(self, key: str, message: str, retry_seconds: float) -> None:
        """The API server refuses the status: a reservation that nobody knows of is taken back, and made again later."""
        self._reconfiguration.apply()
        record = self._world.records.get(key)
        if record is None or record.place is not WorkloadPlace.QUOTA_RESERVED or record.is_evicted:
            return
        written = record.seen.status.conditions
        if not any(one.type == c.QUOTA_RESERVED and one.status == "True" for one in written):
            # Its quota is free at once: without a pause it would get it in the next cycle, and be refused again.
            record.requeue_at = max(record.requeue_at or 0, math.ceil(self._world.now() + retry_seconds))
            self._lifecycle.withdraw(record, c.PENDING_EVALUATION, f"The reservation was not written: {message}")

    @contextmanager
    def _looking_at(self, key: str) -> Iterator[WorkloadRecord | None]:
        """The workload's record. If looking at it fails it stays in hand, to be found."""
        record = self._world.inspected = self._world.records.get(key)
        yield record
        self._world.inspected = None

    def settle(self) -> None:
        """Apply what was noted of the configuration."""
        self._reconfiguration.apply()

    @property
    def culprit(self) -> tuple[str, str] | None:
        """After an exception: kind and key of what was being looked at."""
        found = self._world.inspected
        if found is None:
            return None
        return ("Workload", found.key) if isinstance(found, WorkloadRecord) else (type(found).__name__, found.key)

    # --- time ---------------------------------------------------------------------------------------------------------

    def cycle(self) -> bool:
        """One scheduling cycle over the queues that something happened to; whether another may change something."""
        self._reconfiguration.apply()
        return self._admission.run()

    def fire_timers(self) -> None:
        """Do what is due by now."""
        self._reconfiguration.apply()
        now = self._world.now()
        while (record := self._world.timers.pop(now)) is not None:
            self._world.inspected = record
            self._stopping.expire(record)
        self._world.inspected = None
        if self._world.shares is not None:
            self._sample(self._world.shares, now)

    def _sample(self, shares: AdmissionShares, now: int) -> None:
        """Who is next may be somebody else after it."""
        world = self._world
        for key in shares.sample(now, world.admitted_amounts):
            world.changed_local_queues[key] = None
            local = world.local_queues[key].obj
            queue = world.queues.get(local.spec.cluster_queue) if local is not None else None
            if queue is not None and queue.pending.active_count:
                world.mark_dirty(queue)

    def next_due(self) -> int | None:
        """When the next timer fires, in epoch seconds."""
        due = self._world.timers.next_due()
        sample = None if self._world.shares is None else self._world.shares.next_due()
        return sample if due is None else due if sample is None else min(due, sample)

    # --- what comes of it ---------------------------------------------------------------------------------------------

    def take_effects(self) -> Sequence[Effect]:
        """What is to be done since the last time, in order."""
        return self._world.outbox.take()

    def take_changed_queues(self) -> tuple[Sequence[str], Sequence[str]]:
        """Names of ClusterQueues and keys of LocalQueues whose status changed since the last time."""
        world = self._world
        queues = [name for name in world.changed_queues if name in world.queues]
        local = [key for key in world.changed_local_queues if key in world.local_queues]
        world.changed_queues.clear()
        world.changed_local_queues.clear()
        return queues, [key for key in local if world.local_queues[key].obj is not None]

    def cluster_queue_status(self, name: str) -> QueueStatus:
        self._reconfiguration.apply()
        return self._reporting.cluster_queue_status(name)

    def local_queue_status(self, key: str) -> QueueStatus:
        self._reconfiguration.apply()
        return self._reporting.local_queue_status(key)

    def cluster_queues(self) -> Sequence[ClusterQueueReport]:
        self._reconfiguration.apply()
        return self._reporting.cluster_queues()

    def local_queues(self) -> Sequence[LocalQueueReport]:
        self._reconfiguration.apply()
        return self._reporting.local_queues()

    def unadmitted(self) -> Sequence[UnadmittedCount]:
        """How many workloads are not admitted, by queue and reason."""
        self._reconfiguration.apply()
        return self._tallies.unadmitted()

    def pending_amounts(self) -> Mapping[tuple[str, str, str], int]:
        """(ClusterQueue, flavor or "", resource) -> what pending workloads ask for."""
        self._reconfiguration.apply()
        return self._tallies.pending_amounts()

    def cohort_shares(self) -> Mapping[str, int]:
        """How far each cohort is above its share."""
        self._reconfiguration.apply()
        return self._tallies.cohort_shares()

    def pending(self, cluster_queue: str) -> Sequence[PendingWorkload]:
        """All that wait in a ClusterQueue, in queue order."""
        self._reconfiguration.apply()
        return self._lines.pending(cluster_queue)

    def lines_of_cluster_queue(self, name: str, window: Window) -> Sequence[QueueLine] | None:
        """Some of them, with what they wait for; None if there is no such queue."""
        self._reconfiguration.apply()
        return self._lines.of_cluster_queue(name, window)

    def lines_of_local_queue(self, key: str, window: Window) -> Sequence[QueueLine] | None:
        """The same for those of one LocalQueue ("namespace/name")."""
        self._reconfiguration.apply()
        return self._lines.of_local_queue(key, window)

    def workloads(self) -> Sequence[str]:
        """Keys of all workloads."""
        return list(self._world.records)

    def quota_tree(self, cluster_queue: str) -> str:
        """The same text for all ClusterQueues that share quota with each other."""
        queue = self._world.queues.get(cluster_queue)
        root = None if queue is None else queue.node.root
        return f"queue {cluster_queue}" if root is None or root.is_queue else f"cohort {root.name}"

    def workload(self, key: str) -> Workload | None:
        """The object with the status as the engine has it."""
        record = self._world.records.get(key)
        return None if record is None else with_status(record)

    def explain(self, key: str) -> WorkloadReport | None:
        """Why a workload is where it is."""
        self._reconfiguration.apply()
        return self._reporting.explain(key)

    def check(self) -> None:
        """Assert the invariants."""
        self._reconfiguration.apply()
        check_invariants(self._world)
