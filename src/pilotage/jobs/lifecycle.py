"""The life of a workload that gets quota: reserved, admitted, evicted, done. Every change of the books happens here.

Quota is booked when it is reserved and released when the last pod of an evicted workload is gone, when it finishes,
is deleted or deactivated. An eviction is decided once (`evict`) and completed once (`complete`).
"""

from __future__ import annotations

from pilotage.jobs import checks, pods_ready
from pilotage.jobs import conditions as c
from pilotage.jobs.assignment import Assignment
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.effects import Labels
from pilotage.jobs.queueing import Queueing
from pilotage.jobs.record import AFRESH, WorkloadPlace, WorkloadRecord
from pilotage.jobs.rejections import shown
from pilotage.jobs.status import booked_amounts
from pilotage.jobs.world import World
from pilotage.model.kueue import Admission, PodSetAssignment


class Lifecycle:
    def __init__(self, world: World, queueing: Queueing) -> None:
        self._world = world
        self._queueing = queueing
        self._outbox = world.outbox

    # --- getting quota ------------------------------------------------------------------------------------------------

    def reserve(self, record: WorkloadRecord, queue: QueueState, assignment: Assignment) -> None:
        self._queueing.unqueue(record)
        record.admission = Admission(
            queue.name,
            tuple(
                PodSetAssignment(
                    one.name, dict(one.flavors), {name: shown(name, n) for name, n in one.usage.items()}, one.count
                )
                for one in assignment.pod_sets
            ),
        )
        now = self._world.now()
        waited = now - self.waiting_since(record)
        conditions = record.conditions
        conditions.set(c.QUOTA_RESERVED, True, "QuotaReserved", f"Quota reserved in ClusterQueue {queue.name}", now)
        for kind in (c.EVICTED, c.PREEMPTED):
            old = conditions.get(kind)
            if old is not None and old.is_true:
                conditions.set(kind, False, "QuotaReserved", f"Previously: {old.message}", now)
        record.resumption = AFRESH
        record.waits_for, record.chosen = frozenset(), None
        record.rejection = None
        checks.sync(record, queue, now)
        if self._world.shares is not None:
            self._world.shares.charge(record.local_queue_key, assignment.usage)
        self.hold(record, queue, {pair: amount for pair, amount in assignment.usage.items() if amount})
        if self._world.pods_ready is not None:
            conditions.set(c.PODS_READY, False, c.WAIT_FOR_START, "Not all pods are ready or succeeded", now)
        text = f"Quota reserved in {queue.name}, waited {waited}s; flavors considered: {_considered(assignment)}"
        self._outbox.event(record, "Normal", "QuotaReserved", text)
        labels = queue_labels(record)
        self._outbox.count("quota_reserved_workloads_total", *labels)
        self._outbox.observe("quota_reserved_wait_time_seconds", waited, labels)
        if not self.admit_if_ready(record):
            conditions.set(c.ADMITTED, False, c.UNSATISFIED_CHECKS, "Not all admission checks are ready", now)
        self._outbox.changed(record)

    def hold(self, record: WorkloadRecord, queue: QueueState, usage: dict[tuple[str, str], int]) -> None:
        """Book quota."""
        record.usage = usage
        record.place = WorkloadPlace.QUOTA_RESERVED
        record.cluster_queue = queue.name
        queue.book(record)
        queue.reserving[record.uid] = record
        queue.admitted += record.is_admitted
        if not record.conditions.is_true(c.PODS_READY):
            self._world.unready[record.uid] = record
        self._world.touch(record)

    def admit_if_ready(self, record: WorkloadRecord) -> bool:
        if record.is_admitted or record.is_evicted or not checks.all_ready(record):
            return False
        now, world = self._world.now(), self._world
        waited = now - self.waiting_since(record)
        record.conditions.set(c.ADMITTED, True, "Admitted", "The workload is admitted", now)
        queue = world.queues[record.cluster_queue]
        queue.admitted += 1
        labels = queue_labels(record)
        self._outbox.event(record, "Normal", "Admitted", f"Admitted by ClusterQueue {queue.name}, waited {waited}s")
        self._outbox.count("admitted_workloads_total", *labels)
        self._outbox.observe("admission_wait_time_seconds", waited, labels)
        if record.checks:
            self._outbox.observe("admission_checks_wait_time_seconds", now - record.reserved_at, labels)
        self._outbox.changed(record)
        world.touch(record)
        self.set_timer(record)
        return True

    def waiting_since(self, record: WorkloadRecord) -> int:
        """Creation, or when it was last queued again."""
        requeued = record.conditions.get(c.REQUEUED)
        return requeued.since if requeued is not None and requeued.is_true else record.created

    def set_timer(self, record: WorkloadRecord) -> None:
        """The next thing that can run out for a holder of quota."""
        due: list[int] = []
        conditions, settings = record.conditions, self._world.pods_ready
        if record.is_admitted and not record.is_evicted and not conditions.is_true(c.DEACTIVATION_TARGET):
            found = pods_ready.deadline(record, settings) if settings is not None else None
            if found is not None:
                due.append(found[0])
            limit = execution_deadline(record)
            if limit is not None:
                due.append(limit)
        self._world.timers.set(record, min(due, default=None))

    # --- losing quota -------------------------------------------------------------------------------------------------

    def evict(self, record: WorkloadRecord, reason: str, message: str, cause: str = "") -> None:
        """Decide that a holder must go. Its quota stays booked until its pods are gone."""
        if record.is_evicted:
            return
        self.note_eviction(record, reason, message, cause, held=True)
        self.set_timer(record)

    def note_eviction(self, record: WorkloadRecord, reason: str, message: str, cause: str, *, held: bool) -> None:
        """`reason` is the short one; for a deactivation the condition and the event name the cause too."""
        full = f"{reason}DueTo{cause}" if reason == c.DEACTIVATED and cause else reason
        now = self._world.now()
        ready = record.conditions.get(c.PODS_READY)
        record.conditions.set(c.EVICTED, True, full, message, now)
        checks.reset(record, now)
        times = record.evictions[reason, cause] = record.evictions.get((reason, cause), 0) + 1
        self._outbox.changed(record)
        if not held:
            return
        self._outbox.event(record, "Normal", f"EvictedDueTo{full}", message)
        labels = (*queue_labels(record), ("reason", reason), ("underlying_cause", cause))
        self._outbox.count("evicted_workloads_total", *labels)
        if times == 1:
            self._outbox.count("evicted_workloads_once_total", *labels)
        if ready is not None and ready.is_true:
            self._outbox.observe("pods_ready_to_evicted_time_seconds", now - ready.since, labels)

    def complete(self, record: WorkloadRecord) -> None:
        """The pods of an evicted workload are gone: it gives its quota back and is queued again when it may be."""
        evicted = record.conditions.get(c.EVICTED)
        if evicted is None or not evicted.is_true or not record.has_reservation or record.is_finished:
            return
        now = self._world.now()
        at_once = evicted.reason in (c.PREEMPTED, c.NODE_FAILURES)
        record.conditions.set(c.REQUEUED, at_once, evicted.reason, evicted.message, now)
        # Of a deactivation the condition names the cause too.
        labels = (("cluster_queue", record.cluster_queue), ("reason", evicted.reason.partition("DueTo")[0]))
        self._outbox.observe("workload_eviction_latency_seconds", now - evicted.since, labels)
        self.end_reservation(record, c.PENDING_EVALUATION, "The workload waits for its turn")
        self._enqueue(record)

    def withdraw(self, record: WorkloadRecord, reason: str, message: str) -> None:
        """Take back a reservation of a workload that has not started."""
        self.end_reservation(record, reason, message)
        self._enqueue(record)

    def end_reservation(self, record: WorkloadRecord, reason: str, message: str) -> None:
        """Conditions and books of a workload that has no quota any more."""
        now = self._world.now()
        admitted = record.conditions.get(c.ADMITTED)
        if _ran_too_long(record):
            record.past_seconds = 0
        elif admitted is not None and admitted.is_true:
            # Somebody may have set the clock back meanwhile; the API server rejects a time below 0.
            record.past_seconds += max(0, now - admitted.since)
        self.release(record)
        record.admission = None
        record.conditions.set(c.QUOTA_RESERVED, False, reason, message, now)
        record.conditions.set(c.ADMITTED, False, c.NO_RESERVATION, "The workload has no reservation", now)
        if self._world.pods_ready is not None:
            record.conditions.set(c.PODS_READY, *pods_ready.condition(record, False), now)
        self._outbox.changed(record)

    def release(self, record: WorkloadRecord) -> None:
        """Give back what is booked, if anything is."""
        self._world.timers.set(record, None)
        if record.place is not WorkloadPlace.QUOTA_RESERVED:
            return
        queue = self._world.queues[record.cluster_queue]
        queue.unbook(record)
        record.usage = {}
        del queue.reserving[record.uid]
        queue.admitted -= record.is_admitted
        record.place = WorkloadPlace.UNQUEUED
        self._world.touch(record)
        self._forget_unready(record)
        self._queueing.released(queue)
        if queue.is_gone and not queue.reserving:
            self._world.emptied[queue.name] = None

    def _forget_unready(self, record: WorkloadRecord) -> None:
        if self._world.unready.pop(record.uid, None) is not None:
            self.unblock()

    def unblock(self) -> None:
        """With blockAdmission: if everybody is ready now, whoever waited may go on."""
        if self._world.blocks_admission and not self._world.unready:
            for queue in self._world.queues.values():
                if queue.pending.active_count:
                    queue.generation += 1  # what was found out while nobody could have quota is void
                    self._world.mark_dirty(queue)

    def _enqueue(self, record: WorkloadRecord) -> None:
        if record.is_active:
            self._queueing.place(record)
        else:
            record.place = WorkloadPlace.INACTIVE
            self._queueing.tell(record, c.DEACTIVATED, "The workload is deactivated")

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self, record: WorkloadRecord, reason: str, message: str, *, is_written: bool = False) -> None:
        """`is_written`: somebody else has written it already."""
        if record.is_finished:
            return
        now = self._world.now()
        labels = queue_labels(record)
        admitted = record.conditions.get(c.ADMITTED)
        if admitted is not None and admitted.is_true:
            self._outbox.observe("execution_time_seconds", record.past_seconds + now - admitted.since, labels)
        self._outbox.count("finished_workloads_total", *labels)
        self.drop(record)
        record.conditions.set(c.FINISHED, True, reason, message, now)
        record.place = WorkloadPlace.FINISHED
        self._world.pod_rules.forget(record, record.seen.spec.pod_sets)
        self._world.local_queues[record.local_queue_key].members.pop(record.uid, None)
        if is_written:
            record.written = None
        else:
            self._outbox.changed(record)

    def drop(self, record: WorkloadRecord) -> None:
        """Out of the queues and off the books."""
        self._queueing.unqueue(record)
        self.release(record)

    def reprioritise(self, record: WorkloadRecord, priority: int) -> None:
        """A holder's priority changed: others may preempt it now."""
        queue = self._world.queues[record.cluster_queue]
        queue.unbook(record)
        record.priority = priority
        queue.book(record)
        self._queueing.released(queue)

    def rebook(self, record: WorkloadRecord) -> None:
        """Reclaimable pods changed: book what is still needed."""
        queue = self._world.queues[record.cluster_queue]
        queue.unbook(record)
        record.usage = booked_amounts(record)
        queue.book(record)
        self._world.touch(record)
        self._queueing.released(queue)


def _considered(assignment: Assignment) -> str:
    """Which flavors were passed over, and which were taken."""
    told = []
    for one in assignment.pod_sets:
        refused = {obstacle.flavor: f"{obstacle.flavor} ({obstacle.sentence})" for obstacle in one.passed_over}
        taken = dict.fromkeys(one.flavors.values())
        passed = [text for flavor, text in refused.items() if flavor not in taken]
        told.append(f"{one.name}: {', '.join([*passed, *taken]) or 'none'}")
    return "; ".join(told)


def queue_labels(record: WorkloadRecord) -> Labels:
    """For the metrics of its ClusterQueue, and those of its LocalQueue."""
    return (
        ("cluster_queue", record.cluster_queue),
        ("priority_class", record.priority_class),
        ("name", record.queue_name),
        ("namespace", record.namespace),
    )


def _ran_too_long(record: WorkloadRecord) -> bool:
    """Whoever activates it again means it to have its whole time again."""
    evicted = record.conditions.get(c.EVICTED)
    return evicted is not None and evicted.is_true and evicted.reason.endswith(c.MAXIMUM_EXECUTION_TIME_EXCEEDED)


def execution_deadline(record: WorkloadRecord) -> int | None:
    limit, admitted = record.seen.spec.maximum_execution_time_seconds, record.conditions.get(c.ADMITTED)
    if limit is None or admitted is None or not admitted.is_true:
        return None
    return admitted.since + max(0, limit - record.past_seconds)
