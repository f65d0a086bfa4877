"""What makes a workload lose its quota, or its right to any: timers, admission checks, deactivation, stopped queues."""

from __future__ import annotations

import random

from pilotage.jobs import checks, pods_ready
from pilotage.jobs import conditions as c
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.lifecycle import Lifecycle, execution_deadline, queue_labels
from pilotage.jobs.queueing import Queueing
from pilotage.jobs.record import WorkloadPlace, WorkloadRecord
from pilotage.jobs.status import booked_amounts
from pilotage.jobs.world import World

_DRAIN = "HoldAndDrain"


class Stopping:
    def __init__(self, world: World, queueing: Queueing, lifecycle: Lifecycle, rng: random.Random) -> None:
        self._world = world
        self._queueing = queueing
        self._lifecycle = lifecycle
        self._rng = rng

    # --- begin in the middle ------------------------------------------------------------------------------------------

    def take_over(self, record: WorkloadRecord, queue: QueueState) -> None:
        """It had quota before this engine began: go on from there, with what happened while nobody looked."""
        world = self._world
        self._lifecycle.hold(record, queue, booked_amounts(record))
        if record.conditions.is_true(c.DEACTIVATION_TARGET):
            world.outbox.deactivate(record)
            return
        if checks.sync(record, queue, world.now()):
            world.outbox.changed(record)
        self._lifecycle.set_timer(record)
        self.checks_changed(record)
        self.stop_if_wanted(record)

    # --- timers -------------------------------------------------------------------------------------------------------

    def expire(self, record: WorkloadRecord) -> None:
        """The timer of a workload went off: do what is due."""
        now = self._world.now()
        if record.place is WorkloadPlace.BACKOFF:
            self._queueing.place(record)
            return
        if record.place is not WorkloadPlace.QUOTA_RESERVED:
            return
        limit = execution_deadline(record)
        if limit is not None and limit <= now:
            self._execution_limit(record)
            return
        settings = self._world.pods_ready
        found = pods_ready.deadline(record, settings) if settings is not None else None
        if found is not None and found[0] <= now:
            self._not_ready_in_time(record, found[1])
        self._lifecycle.set_timer(record)

    def _not_ready_in_time(self, record: WorkloadRecord, cause: str) -> None:
        settings = self._world.pods_ready
        assert settings is not None
        strategy, requeues = settings.requeuing_strategy, (record.requeue_count or 0) + 1
        limit = strategy.backoff_limit_count
        if limit is not None and requeues > limit:
            text = f"Deactivated after {limit} requeues: the pods were never ready in time"
            self.request_deactivation(record, c.REQUEUING_LIMIT_EXCEEDED, text)
            return
        at = int(self._world.now() + pods_ready.backoff_seconds(requeues, strategy, self._rng))
        record.requeue_count = requeues
        record.requeue_at = max(record.requeue_at or 0, at)
        is_start = cause == c.WAIT_FOR_START
        seconds = pods_ready.start_timeout(record, settings) if is_start else settings.effective_recovery_timeout
        self._lifecycle.evict(record, c.PODS_READY_TIMEOUT, f"Exceeded the PodsReady timeout of {seconds:g}s", cause)

    def _execution_limit(self, record: WorkloadRecord) -> None:
        seconds = record.seen.spec.maximum_execution_time_seconds
        text = f"Exceeded the maximum execution time of {seconds}s"
        record.past_seconds = 0
        self._world.outbox.event(record, "Warning", c.MAXIMUM_EXECUTION_TIME_EXCEEDED, text)
        self.request_deactivation(record, c.MAXIMUM_EXECUTION_TIME_EXCEEDED, text)

    # --- deactivation -------------------------------------------------------------------------------------------------

    def request_deactivation(self, record: WorkloadRecord, reason: str, message: str) -> None:
        """Ask for spec.active=false; the rest follows when that is seen."""
        record.conditions.set(c.DEACTIVATION_TARGET, True, reason, message, self._world.now())
        self._world.outbox.changed(record)
        self._world.outbox.deactivate(record)
        self._world.timers.set(record, None)

    def deactivated(self, record: WorkloadRecord) -> None:
        """spec.active became false: the quota is free at once, even while pods still terminate."""
        target = record.conditions.get(c.DEACTIVATION_TARGET)
        cause = target.reason if target is not None and target.is_true else ""
        held = record.has_reservation
        if not record.is_evicted:
            message = target.message if target is not None else "The workload is deactivated"
            self._lifecycle.note_eviction(record, c.DEACTIVATED, message, cause, held=held)
        record.conditions.remove(c.DEACTIVATION_TARGET)
        record.requeue_count = record.requeue_at = None
        self._lifecycle.drop(record)
        record.place = WorkloadPlace.INACTIVE
        if not record.has_reservation:
            self._queueing.tell(record, c.DEACTIVATED, "The workload is deactivated")
        self._world.outbox.changed(record)

    def reactivated(self, record: WorkloadRecord) -> None:
        """spec.active became true again. While its pods still terminate it has to wait for their end."""
        if not record.has_reservation:
            self._queueing.place(record)

    # --- readiness ----------------------------------------------------------------------------------------------------

    def note_readiness(self, record: WorkloadRecord, is_ready: bool) -> None:
        if self._world.pods_ready is None or record.place is not WorkloadPlace.QUOTA_RESERVED:
            return
        world, was = self._world, record.conditions.is_true(c.PODS_READY)
        status, reason, message = pods_ready.condition(record, is_ready)
        if not record.conditions.set(c.PODS_READY, status, reason, message, world.now()):
            return
        world.outbox.changed(record)
        if status and not was:
            world.unready.pop(record.uid, None)
            self._lifecycle.unblock()
            if reason == c.STARTED:
                self._observe_start(record)
        elif not status:
            world.unready[record.uid] = record
        self._lifecycle.set_timer(record)

    def _observe_start(self, record: WorkloadRecord) -> None:
        labels = queue_labels(record)
        now, admitted = self._world.now(), record.conditions.get(c.ADMITTED)
        assert admitted is not None
        outbox = self._world.outbox
        outbox.observe("ready_wait_time_seconds", now - self._lifecycle.waiting_since(record), labels)
        outbox.observe("admitted_until_ready_wait_time_seconds", now - admitted.since, labels)

    # --- admission checks ---------------------------------------------------------------------------------------------

    def checks_changed(self, record: WorkloadRecord) -> None:
        """Rejected wins over Retry, Retry over Ready."""
        if record.place is not WorkloadPlace.QUOTA_RESERVED or record.is_evicted:
            return
        rejected, retried = checks.named(record, checks.REJECTED), checks.named(record, checks.RETRY)
        if rejected:
            text = f"Admission check(s) rejected the workload: {', '.join(rejected)}"
            self._world.outbox.event(record, "Warning", "AdmissionCheckRejected", text)
            self.request_deactivation(record, c.ADMISSION_CHECK, text)
        elif retried:
            at = checks.retry_at(record)
            if at is not None and at > max(self._world.now(), record.requeue_at or 0):
                record.requeue_at = at
            text = f"At least one admission check wants a retry: {', '.join(retried)}"
            self._lifecycle.evict(record, c.ADMISSION_CHECK, text)
        else:
            self._lifecycle.admit_if_ready(record)

    # --- stopped queues -----------------------------------------------------------------------------------------------

    def stop_if_wanted(self, record: WorkloadRecord) -> None:
        """Of a holder, if its ClusterQueue or LocalQueue is stopped."""
        queue = self._world.queues[record.cluster_queue]
        local = self._world.local_queues[record.local_queue_key]
        if queue.is_stopped and not queue.is_gone:
            text = f"The ClusterQueue {queue.name} is stopped"
            self._stop(record, c.CLUSTER_QUEUE_STOPPED, text, drain=queue.obj.spec.stop_policy == _DRAIN)
        if record.place is WorkloadPlace.QUOTA_RESERVED and local.obj is not None and local.is_stopped:
            text = f"The LocalQueue {record.queue_name} is stopped"
            self._stop(record, c.LOCAL_QUEUE_STOPPED, text, drain=local.obj.spec.stop_policy == _DRAIN)

    def _stop(self, record: WorkloadRecord, reason: str, message: str, *, drain: bool) -> None:
        """What has not started loses its reservation, what runs only if the queue is drained."""
        if not record.is_admitted:
            if not record.is_evicted:
                self._lifecycle.withdraw(record, c.SUSPENDED, message)
        elif drain:
            self._lifecycle.evict(record, reason, message)
