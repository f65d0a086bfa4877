"""The engine of workload queueing: facts in, effects out, nothing waits, no locks.

    engine = JobQueueing(clock, rng, configuration)
    engine.upsert(obj)  engine.delete(obj)              # any Kueue kind, LimitRange, RuntimeClass, as from the watch
    engine.pods_ready("ns/w", True) ...                 # what adapters know of the job
    while engine.cycle(): pass                          # until nothing changes
    for effect in engine.take_effects(): ...            # write, record, count
    due = engine.next_due()                             # sleep until then, engine.fire_timers(), cycle again

Rules for the shell
- A workload is known by its key ("namespace/name"). Hand in every watch event; the engine compares with what it saw
  before and takes what others changed: spec, admission check states, reclaimablePods, WaitingForReplacementPods. Its
  own writes (all other conditions, admission, requeueState, schedulingStats) it knows; an older echo does no harm.
- The first sight of a workload (start, change of leader) is the exception: then its whole status is taken over, so that
  reservations, back-off and timers go on where they were.
- Times are whole epoch seconds.

Owners, each the only writer of its state: `QuotaTree` (ClusterQueues, cohorts, what is reserved), `Queues` (who waits
where), `Workloads` (records and statuses). What happens to them: `WorkloadUpdates` (others change workloads),
`Reconfiguration` (administrators change queues), `Evictions` (timers, checks, stopped queues), and `AdmissionCycle`, a
new one for each cycle. Changes of configuration are kept one by one and applied together, in one place: what needs
the present state gets it by `_current`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pilotage.clock import Clock
from pilotage.jobs.admission import AdmissionCycle
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import Effect, Outbox
from pilotage.jobs.evictions import Evictions
from pilotage.jobs.invariants import check_invariants
from pilotage.jobs.node_fit import NodeFit
from pilotage.jobs.queue_lines import QueueLines, Window
from pilotage.jobs.queues import Queues
from pilotage.jobs.quota_tree import Inspection, QuotaTree
from pilotage.jobs.reconfiguration import Reconfiguration
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.reporting import QueueTallies, Reporting
from pilotage.jobs.reports import (
    ClusterQueueReport,
    CohortReport,
    LocalQueueReport,
    PendingWorkload,
    QueueLine,
    UnadmittedCount,
    WorkloadReport,
)
from pilotage.jobs.room import Anywhere, Room
from pilotage.jobs.status import with_status
from pilotage.jobs.timers import Timers
from pilotage.jobs.workload_updates import WorkloadUpdates
from pilotage.jobs.workloads import Workloads
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
    def __init__(
        self, clock: Clock, rng: random.Random, configuration: QueueingConfiguration, room: Room | None = None
    ) -> None:
        """`room`: what is known of nodes; each engine that gets it begins with all of it."""
        self._inspection = Inspection()
        self._timers = timers = Timers(clock)
        self._outbox = outbox = Outbox()
        tree = QuotaTree(self._inspection)
        room = room or Anywhere()
        room.begin_anew()
        queues = Queues(tree, timers, outbox, configuration, NodeFit(room, tree, timers))
        self._workloads = workloads = Workloads(queues, timers, outbox, configuration)
        self._evictions = Evictions(workloads, rng)
        self._updates = WorkloadUpdates(workloads, self._evictions)
        self._reconfiguration = Reconfiguration(workloads, self._evictions, self._inspection)
        self._current = self._reconfiguration.applied
        """The one way to the present state: the workloads, their queues and their quota."""
        self._cycles = 0

    # --- what happens -------------------------------------------------------------------------------------------------

    def upsert(self, obj: QueueingObject) -> None:
        """An object was created or changed."""
        match obj:
            case Workload():
                self._current()
                self._inspection.obj = obj
                self._updates.upsert(obj)
                self._inspection.obj = None
            case ClusterQueue():
                self._reconfiguration.set_queue(obj)
            case LocalQueue():
                self._reconfiguration.set_local_queue(obj)
            case Cohort():
                self._reconfiguration.set_cohort(obj)
            case ResourceFlavor():
                self._reconfiguration.set_flavor(obj)
            case AdmissionCheck():
                self._reconfiguration.set_check(obj)
            case LimitRange():
                self._updates.reshape(self._current().pod_rules.set_limit_range(obj))
            case RuntimeClass():
                self._updates.reshape(self._current().pod_rules.set_class(obj))

    def delete(self, obj: QueueingObject) -> None:
        """An object is gone."""
        match obj:
            case Workload():
                self._current().remove(obj.key)
                self._inspection.obj = None
            case ClusterQueue():
                self._reconfiguration.delete_queue(obj.name)
            case LocalQueue():
                self._reconfiguration.delete_local_queue(obj.key)
            case Cohort():
                self._reconfiguration.delete_cohort(obj.name)
            case ResourceFlavor():
                self._reconfiguration.delete_flavor(obj.name)
            case AdmissionCheck():
                self._reconfiguration.delete_check(obj.name)
            case LimitRange():
                self._updates.reshape(self._current().pod_rules.delete_limit_range(obj))
            case RuntimeClass():
                self._updates.reshape(self._current().pod_rules.delete_class(obj))

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace has these labels."""
        self._reconfiguration.set_namespace(name, dict(labels))

    def delete_namespace(self, name: str) -> None:
        self._workloads.queues.delete_namespace(name)

    def pods_ready(self, key: str, is_ready: bool) -> None:
        """Whether all pods of the workload's job are ready or succeeded."""
        with self._inspecting(key) as record:
            if record is not None:
                self._evictions.note_readiness(record, is_ready)

    def pods_gone(self, key: str) -> None:
        """The stopped job of an evicted workload has no pods left: the eviction is complete. May be said again."""
        with self._inspecting(key) as record:
            if record is not None:
                self._evictions.pods_gone(record)

    def pods_troubled(self, key: str) -> None:
        """Other pods of the workload than before fit on no node."""
        with self._inspecting(key) as record:
            if record is not None:
                self._evictions.note_trouble(record)

    def nodes_changed(self) -> None:
        """Something has become free on nodes, or they are others."""
        self._current().queues.nodes_changed(self._workloads.node_fit.may_fit)

    def finished(self, key: str, reason: str, message: str) -> None:
        """The job ended: Succeeded, Failed, OutOfSync, OwnerNotFound or FailedToStart."""
        with self._inspecting(key) as record:
            if record is not None:
                self._workloads.finish(record, reason, message)

    def write_rejected(self, key: str, message: str, retry_seconds: float) -> None:
        """The API server rejects the status: a reservation that it does not have is withdrawn, and made again later."""
        with self._inspecting(key) as record:
            if record is not None:
                self._evictions.reservation_rejected(record, message, retry_seconds)

    @contextmanager
    def _inspecting(self, key: str) -> Iterator[WorkloadRecord | None]:
        """The workload's record. If looking at it fails it is known which one it was."""
        record = self._inspection.obj = self._current().records.get(key)
        yield record
        self._inspection.obj = None

    def settle(self) -> None:
        """Apply what was noted of the configuration."""
        self._current()

    @property
    def culprit(self) -> tuple[str, str] | None:
        """After an exception: kind and key of what was being looked at. Such an engine is not to be used on."""
        return self._inspection.culprit

    # --- time ---------------------------------------------------------------------------------------------------------

    def cycle(self) -> bool:
        """One admission cycle over the queues that something happened to; whether another may change something."""
        workloads = self._current()
        self._cycles += 1
        if not workloads.queues.dirty:
            return False
        return AdmissionCycle(workloads, self._inspection, self._cycles).run()

    def fire_timers(self) -> None:
        """Do what is due by now."""
        queues = self._current().queues
        now = self._timers.now()
        while (record := self._timers.pop(now)) is not None:
            self._inspection.obj = record
            self._evictions.expire(record)
        self._inspection.obj = None
        queues.sample()

    def next_due(self) -> int | None:
        """When the next timer fires, in epoch seconds."""
        due, sample = self._timers.next_due(), self._workloads.queues.next_sample()
        return sample if due is None else due if sample is None else min(due, sample)

    # --- what comes of it ---------------------------------------------------------------------------------------------

    def take_effects(self) -> Sequence[Effect]:
        """What is to be done since the last time, in order."""
        return self._outbox.take()

    def take_changed_queues(self) -> tuple[Sequence[str], Sequence[str]]:
        """Names of ClusterQueues and keys of LocalQueues whose status changed since the last time."""
        cluster_queues, local_queues = self._outbox.take_queues()
        known, known_local = self._workloads.tree.queues, self._workloads.queues.local_queues
        existing = [key for key in local_queues if key in known_local and known_local[key].obj is not None]
        return [name for name in cluster_queues if name in known], existing

    def cluster_queue_status(self, name: str) -> QueueStatus:
        return Reporting(self._current()).cluster_queue_status(name)

    def local_queue_status(self, key: str) -> QueueStatus:
        return Reporting(self._current()).local_queue_status(key)

    def cluster_queues(self) -> Sequence[ClusterQueueReport]:
        return Reporting(self._current()).cluster_queues()

    def cohorts(self) -> Sequence[CohortReport]:
        """Those with ClusterQueues below them."""
        return Reporting(self._current()).cohorts()

    def local_queues(self) -> Sequence[LocalQueueReport]:
        return Reporting(self._current()).local_queues()

    def unadmitted(self) -> Sequence[UnadmittedCount]:
        """How many workloads are not admitted, by queue and reason."""
        return QueueTallies(self._current()).unadmitted()

    def pending_amounts(self) -> Mapping[tuple[str, str, str], int]:
        """(ClusterQueue, flavor or "", resource) -> what pending workloads ask for."""
        return QueueTallies(self._current()).pending_amounts()

    def cohort_shares(self) -> Mapping[str, int]:
        """How far each cohort is above its share."""
        return QueueTallies(self._current()).cohort_shares()

    def pending(self, cluster_queue: str) -> Sequence[PendingWorkload]:
        """All that wait in a ClusterQueue, in queue order."""
        return QueueLines(self._current()).pending(cluster_queue)

    def lines_of_cluster_queue(self, name: str, window: Window) -> Sequence[QueueLine] | None:
        """Some of them, with what they wait for; None if there is no such queue."""
        return QueueLines(self._current()).of_cluster_queue(name, window)

    def lines_of_local_queue(self, key: str, window: Window) -> Sequence[QueueLine] | None:
        """The same for those of one LocalQueue ("namespace/name")."""
        return QueueLines(self._current()).of_local_queue(key, window)

    def workloads(self) -> Sequence[str]:
        """Keys of all workloads."""
        return list(self._workloads.records)

    def quota_tree(self, cluster_queue: str) -> str:
        """The same text for all ClusterQueues that share quota with each other."""
        queue = self._workloads.tree.queues.get(cluster_queue)
        root = None if queue is None else queue.node.root
        return f"queue {cluster_queue}" if root is None or root.is_queue else f"cohort {root.name}"

    def workload(self, key: str) -> Workload | None:
        """The object with the status as the engine has it."""
        record = self._workloads.records.get(key)
        return None if record is None else with_status(record)

    def explain(self, key: str) -> WorkloadReport | None:
        """Why a workload is where it is."""
        return Reporting(self._current()).explain(key)

    def check(self) -> None:
        """Assert the invariants."""
        check_invariants(self._current())
