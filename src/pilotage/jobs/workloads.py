"""The workloads: their records, and what happens to one that gets quota: reserved, admitted, evicted, done.

`Workloads` is the only one who adds and removes records, and every status changes here or, while a workload waits, in
`Queues`. Quota is reserved and released through the `QuotaTree`: it is free again when the last pod of an evicted
workload is gone, when it finishes, is deleted or deactivated. An eviction is decided once (`evict`) and completed once
(`complete`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilotage.jobs import conditions as c
from pilotage.jobs import pods_ready
from pilotage.jobs.assignment import Assignment
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.configuration.kinds import QueueingConfiguration, RequeuingStrategy
from pilotage.jobs.effects import Labels, Outbox
from pilotage.jobs.pod_rules import PodRules
from pilotage.jobs.queues import Queues
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.record import WorkloadPlace, WorkloadRecord
from pilotage.jobs.rejections import shown
from pilotage.jobs.room import TopologyDomain, TopologyDomains
from pilotage.jobs.status import new_record, reserved_amounts
from pilotage.jobs.timers import Timers
from pilotage.model.kueue import (
    Admission,
    DomainPodCounts,
    LevelValues,
    PodSetAssignment,
    TopologyAssignment,
    TopologySlice,
    Workload,
)


class Workloads:
    """`tree`, `queues`, `timers` and `outbox` are there for those who work with workloads."""

    def __init__(self, queues: Queues, timers: Timers, outbox: Outbox, configuration: QueueingConfiguration) -> None:
        self.tree = queues.tree
        self.queues = queues
        self.node_fit = queues.node_fit
        self.timers = timers
        self.outbox = outbox
        self.configuration = configuration
        self.pod_rules = PodRules(configuration.resources)
        self.pods_ready = ready = configuration.wait_for_pods_ready
        self.requeuing = RequeuingStrategy() if ready is None else ready.requeuing_strategy
        self._blocks_admission = self.pods_ready is not None and self.pods_ready.block_admission
        self._records: dict[str, WorkloadRecord] = {}
        self.records: Mapping[str, WorkloadRecord] = self._records
        """By key."""
        self._unready: dict[str, WorkloadRecord] = {}
        self.unready: Mapping[str, WorkloadRecord] = self._unready
        """Those with quota whose pods are not ready, by UID."""
        self._unassigned: dict[str, WorkloadRecord] = {}
        """With quota in a ClusterQueue that is not known (yet)."""

    # --- records ------------------------------------------------------------------------------------------------------

    @property
    def blocking(self) -> WorkloadRecord | None:
        """With blockAdmission: one because of which no workload gets quota at present."""
        return next(iter(self._unready.values()), None) if self._blocks_admission else None

    def add(self, workload: Workload) -> WorkloadRecord:
        record = new_record(workload, self.pod_rules.shape(workload), self.timers.now())
        self._records[record.key] = record
        if record.is_finished:
            record.rest(WorkloadPlace.FINISHED)
        else:
            self.queues.join_local_queue(record)
            self.pod_rules.follow(record)
        return record

    def remove(self, key: str) -> None:
        record = self._records.pop(key, None)
        if record is None:
            return
        self.drop(record)
        self.pod_rules.forget(record, record.seen.spec.pod_sets)
        self._unassigned.pop(record.uid, None)
        self.outbox.forget(record)
        self.queues.leave_local_queue(record)

    def is_unassigned(self, record: WorkloadRecord) -> bool:
        """Whether its quota is in a ClusterQueue that is not known."""
        return record.uid in self._unassigned

    def set_unassigned(self, record: WorkloadRecord) -> None:
        self._unassigned[record.uid] = record

    def forget_unassigned(self, record: WorkloadRecord) -> None:
        self._unassigned.pop(record.uid, None)

    def take_assignable(self) -> Iterator[tuple[WorkloadRecord, QueueState]]:
        """Those whose ClusterQueue is known by now."""
        for record in list(self._unassigned.values()):
            queue = self.tree.queues.get(record.cluster_queue)
            if queue is not None:
                del self._unassigned[record.uid]
                yield record, queue

    # --- getting quota ------------------------------------------------------------------------------------------------

    def reserve(
        self, record: WorkloadRecord, queue: QueueState, assignment: Assignment, domains: TopologyDomains
    ) -> None:
        """`domains`: those of the pod sets that are to be in one."""
        self.queues.unqueue(record)
        now, waited = self.timers.now(), self.timers.now() - record.waiting_since
        record.set_admission(_admission(queue, assignment, domains))
        text = f"Quota reserved in ClusterQueue {queue.name}"
        record.set_condition(c.QUOTA_RESERVED, True, "QuotaReserved", text, now)
        for kind in (c.EVICTED, c.PREEMPTED):
            old = record.conditions.get(kind)
            if old is not None and old.is_true:
                record.set_condition(kind, False, "QuotaReserved", f"Previously: {old.message}", now)
        record.end_attempt()
        queue.sync_checks(record, now)
        self.queues.charge(record, assignment.usage)
        self.hold(record, queue, {pair: amount for pair, amount in assignment.usage.items() if amount})
        if self.pods_ready is not None:
            record.set_condition(c.PODS_READY, False, c.WAIT_FOR_START, "Not all pods are ready or succeeded", now)
        text = f"Quota reserved in {queue.name}, waited {waited}s; flavors considered: {_considered(assignment)}"
        self.outbox.event(record, "Normal", "QuotaReserved", text)
        labels = queue_labels(record)
        self.outbox.count("quota_reserved_workloads_total", *labels)
        self.outbox.observe("quota_reserved_wait_time_seconds", waited, labels)
        if not self.admit_if_ready(record):
            record.set_condition(c.ADMITTED, False, c.UNSATISFIED_CHECKS, "Not all admission checks are ready", now)
        self.outbox.changed(record)

    def hold(self, record: WorkloadRecord, queue: QueueState, usage: dict[FlavorResource, int]) -> None:
        """Book quota that is reserved now, or was before this engine began."""
        self.tree.reserve(record, queue, usage)
        if not record.conditions.is_true(c.PODS_READY):
            self._unready[record.uid] = record
        self.outbox.queues_changed(record)

    def admit_if_ready(self, record: WorkloadRecord) -> bool:
        if record.is_admitted or record.is_evicted or not record.are_checks_ready:
            return False
        now, waited = self.timers.now(), self.timers.now() - record.waiting_since
        record.set_condition(c.ADMITTED, True, "Admitted", "The workload is admitted", now)
        self.tree.admit(record)
        labels, text = queue_labels(record), f"Admitted by ClusterQueue {record.cluster_queue}, waited {waited}s"
        self.outbox.event(record, "Normal", "Admitted", text)
        self.outbox.count("admitted_workloads_total", *labels)
        self.outbox.observe("admission_wait_time_seconds", waited, labels)
        if record.checks:
            self.outbox.observe("admission_checks_wait_time_seconds", now - record.reserved_at, labels)
        self.outbox.changed(record)
        self.outbox.queues_changed(record)
        self.set_timer(record)
        return True

    def set_timer(self, record: WorkloadRecord) -> None:
        """The next thing that can run out for a workload with quota."""
        due: list[int] = []
        conditions, settings = record.conditions, self.pods_ready
        if record.is_admitted and not record.is_evicted and not conditions.is_true(c.DEACTIVATION_TARGET):
            found = pods_ready.deadline(record, settings) if settings is not None else None
            if found is not None:
                due.append(found[0])
            limit = record.execution_deadline
            if limit is not None:
                due.append(limit)
            no_node = pods_ready.unschedulable_deadline(record, self.tree.queues[record.cluster_queue])
            if no_node is not None:
                due.append(no_node[0])
        self.timers.set(record, min(due, default=None))

    # --- losing quota -------------------------------------------------------------------------------------------------

    def evict(self, record: WorkloadRecord, reason: str, message: str, cause: str = "") -> None:
        """Decide that a workload loses its quota, which stays reserved until its pods are gone."""
        if record.is_evicted:
            return
        self.record_eviction(record, reason, message, cause, had_quota=True)
        self.node_fit.room.release(record.key)
        self.set_timer(record)

    def record_eviction(
        self, record: WorkloadRecord, reason: str, message: str, cause: str, *, had_quota: bool
    ) -> None:
        """`reason` is the short one; for a deactivation the condition and the event name the cause too."""
        full = f"{reason}DueTo{cause}" if reason == c.DEACTIVATED and cause else reason
        now = self.timers.now()
        ready = record.conditions.get(c.PODS_READY)
        record.set_condition(c.EVICTED, True, full, message, now)
        record.reset_checks(now)
        times = record.count_eviction(reason, cause)
        self.outbox.changed(record)
        if not had_quota:
            return
        self.outbox.event(record, "Normal", f"EvictedDueTo{full}", message)
        labels = (*queue_labels(record), ("reason", reason), ("underlying_cause", cause))
        self.outbox.count("evicted_workloads_total", *labels)
        if times == 1:
            self.outbox.count("evicted_workloads_once_total", *labels)
        if ready is not None and ready.is_true:
            self.outbox.observe("pods_ready_to_evicted_time_seconds", now - ready.since, labels)

    def complete(self, record: WorkloadRecord) -> None:
        """The pods of an evicted workload are gone: it gives its quota back and is queued again when it may be."""
        evicted = record.conditions.get(c.EVICTED)
        if evicted is None or not evicted.is_true or not record.has_reservation or record.is_finished:
            return
        now = self.timers.now()
        at_once = evicted.reason in (c.PREEMPTED, c.NODE_FAILURES, c.ADMISSION_WITHDRAWN)
        record.set_condition(c.REQUEUED, at_once, evicted.reason, evicted.message, now)
        # Of a deactivation the condition names the cause too.
        labels = (("cluster_queue", record.cluster_queue), ("reason", evicted.reason.partition("DueTo")[0]))
        self.outbox.observe("workload_eviction_latency_seconds", now - evicted.since, labels)
        self.end_reservation(record, c.PENDING_EVALUATION, "The workload waits for its turn")
        self._enqueue(record)

    def withdraw(self, record: WorkloadRecord, reason: str, message: str) -> None:
        """Take back a reservation of a workload that has not started."""
        self.end_reservation(record, reason, message)
        self._enqueue(record)

    def end_reservation(self, record: WorkloadRecord, reason: str, message: str) -> None:
        """Conditions and books of a workload that has no quota any more."""
        now = self.timers.now()
        admitted = record.conditions.get(c.ADMITTED)
        if _ran_too_long(record):
            record.forget_past_seconds()
        elif admitted is not None and admitted.is_true:
            # The clock may have been set back meanwhile; the API server rejects a time below 0.
            record.add_past_seconds(max(0, now - admitted.since))
        self.release(record)
        record.set_admission(None)
        record.set_condition(c.QUOTA_RESERVED, False, reason, message, now)
        record.set_condition(c.ADMITTED, False, c.NO_RESERVATION, "The workload has no reservation", now)
        if self.pods_ready is not None:
            record.set_condition(c.PODS_READY, *pods_ready.condition(record, False), now)
        self.outbox.changed(record)

    def release(self, record: WorkloadRecord) -> None:
        """Give back the quota, if any is reserved."""
        self.timers.set(record, None)
        if record.place is not WorkloadPlace.QUOTA_RESERVED:
            return
        self.outbox.queues_changed(record)
        self.node_fit.room.release(record.key)
        queue = self.tree.release(record)
        if self._unready.pop(record.uid, None) is not None:
            self._unblock()
        self.queues.released(queue)

    def set_pods_ready(self, record: WorkloadRecord, is_ready: bool) -> str:
        """Of a workload with quota; returns the reason of the condition if it changed."""
        was_ready = record.conditions.is_true(c.PODS_READY)
        status, reason, message = pods_ready.condition(record, is_ready)
        if not record.set_condition(c.PODS_READY, status, reason, message, self.timers.now()):
            return ""
        self.outbox.changed(record)
        if status and not was_ready:
            self._unready.pop(record.uid, None)
            self._unblock()
        elif not status:
            self._unready[record.uid] = record
        return reason if status != was_ready else ""

    def _unblock(self) -> None:
        """With blockAdmission: if all are ready now, those that waited may go on."""
        if self._blocks_admission and not self._unready:
            self.queues.unblocked()

    def _enqueue(self, record: WorkloadRecord) -> None:
        if record.is_active:
            self.queues.place(record)
        else:
            record.rest(WorkloadPlace.INACTIVE)
            self.queues.report(record, c.DEACTIVATED, "The workload is deactivated")

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self, record: WorkloadRecord, reason: str, message: str, *, is_written: bool = False) -> None:
        """`is_written`: another client has written it already."""
        if record.is_finished:
            return
        now = self.timers.now()
        labels = queue_labels(record)
        admitted = record.conditions.get(c.ADMITTED)
        if admitted is not None and admitted.is_true:
            self.outbox.observe("execution_time_seconds", record.past_seconds + now - admitted.since, labels)
        self.outbox.count("finished_workloads_total", *labels)
        self.drop(record)
        record.set_condition(c.FINISHED, True, reason, message, now)
        record.rest(WorkloadPlace.FINISHED)
        self.pod_rules.forget(record, record.seen.spec.pod_sets)
        self.queues.leave_local_queue(record)
        if not is_written:
            self.outbox.changed(record)

    def drop(self, record: WorkloadRecord) -> None:
        """Out of the queues, and without quota."""
        self.node_fit.forget(record)
        self.queues.unqueue(record)
        self.release(record)

    def change_priority(self, record: WorkloadRecord, priority: int) -> None:
        if record.place is WorkloadPlace.QUOTA_RESERVED:
            # Others may preempt it now.
            self.queues.released(self.tree.change_priority(record, priority))
        else:
            record.set_priority(priority)

    def change_usage(self, record: WorkloadRecord) -> None:
        """Reclaimable pods changed: reserve what is still needed."""
        queue = self.tree.change_usage(record, reserved_amounts(record))
        self.node_fit.keep(record)
        self.outbox.queues_changed(record)
        self.queues.released(queue)


def _admission(queue: QueueState, assignment: Assignment, domains: TopologyDomains) -> Admission:
    return Admission(
        queue.name,
        tuple(
            PodSetAssignment(
                one.name,
                dict(one.flavors),
                {name: shown(name, n) for name, n in one.usage.items()},
                one.count,
                _in_domain(domains.get(one.name), one.count),
            )
            for one in assignment.pod_sets
        ),
    )


def _in_domain(domain: TopologyDomain | None, count: int) -> TopologyAssignment | None:
    if domain is None:
        return None
    return TopologyAssignment((domain.key,), (TopologySlice(1, (LevelValues(domain.value),), DomainPodCounts(count)),))


def _considered(assignment: Assignment) -> str:
    """Which flavors were passed over, and which were taken."""
    parts = []
    for one in assignment.pod_sets:
        rejected = {obstacle.flavor: f"{obstacle.flavor} ({obstacle.sentence})" for obstacle in one.passed_over}
        taken = dict.fromkeys(one.flavors.values())
        passed = [text for flavor, text in rejected.items() if flavor not in taken]
        parts.append(f"{one.name}: {', '.join([*passed, *taken]) or 'none'}")
    return "; ".join(parts)


def queue_labels(record: WorkloadRecord) -> Labels:
    """For the metrics of its ClusterQueue, and those of its LocalQueue."""
    return (
        ("cluster_queue", record.cluster_queue),
        ("priority_class", record.priority_class),
        ("name", record.queue_name),
        ("namespace", record.namespace),
    )


def _ran_too_long(record: WorkloadRecord) -> bool:
    """A workload that is activated again has its whole time again."""
    evicted = record.conditions.get(c.EVICTED)
    return evicted is not None and evicted.is_true and evicted.reason.endswith(c.MAXIMUM_EXECUTION_TIME_EXCEEDED)
