"""What makes a workload lose its quota, or its right to any: timers, admission checks, deactivation, stopped queues."""

from __future__ import annotations

import math
import random
from typing import Final

from pilotage.jobs import conditions as c
from pilotage.jobs import pods_ready
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.record import REJECTED, RETRY, WorkloadPlace, WorkloadRecord
from pilotage.jobs.status import reserved_amounts
from pilotage.jobs.workloads import Workloads, queue_labels
from pilotage.model.kueue import WorkloadStatus

_DRAIN = "HoldAndDrain"


_WITHDRAWN: Final = "The admission was taken out of the workload's status"
_LONGEST_LEAVING_SECONDS: Final = 60
"""A pod whose node does not answer never goes."""


class Evictions:
    def __init__(self, workloads: Workloads, rng: random.Random) -> None:
        self._workloads = workloads
        self._queues = workloads.queues
        self._timers = workloads.timers
        self._outbox = workloads.outbox
        self._rng = rng
        self._leaving: dict[str, WorkloadRecord] = {}
        """Evicted workloads whose jobs have stopped, and whose last pods are still on nodes, by UID."""

    # --- begin in the middle ------------------------------------------------------------------------------------------

    def take_over(self, record: WorkloadRecord, queue: QueueState) -> None:
        """It had quota before this engine began: go on from there, with what happened meanwhile."""
        self._workloads.hold(record, queue, reserved_amounts(record))
        self._workloads.node_fit.keep(record)
        self._see_trouble(record)
        if record.conditions.is_true(c.DEACTIVATION_TARGET):
            self._outbox.deactivate(record)
            return
        if queue.sync_checks(record, self._timers.now()):
            self._outbox.changed(record)
        self._workloads.set_timer(record)
        self.checks_changed(record)
        self.stop_if_wanted(record)

    # --- timers -------------------------------------------------------------------------------------------------------

    def expire(self, record: WorkloadRecord) -> None:
        """The timer of a workload went off: do what is due."""
        now = self._timers.now()
        if record.place is WorkloadPlace.BACKOFF:
            self._queues.place(record)
            return
        if record.place is not WorkloadPlace.QUOTA_RESERVED:
            return
        if record.uid in self._leaving:
            self._complete(record)
            return
        limit = record.execution_deadline
        if limit is not None and limit <= now:
            self._execution_limit(record)
            return
        settings, queue = self._workloads.pods_ready, self._workloads.tree.queues[record.cluster_queue]
        no_node = pods_ready.unschedulable_deadline(record, queue)
        found = pods_ready.deadline(record, settings) if settings is not None else None
        if no_node is not None and no_node[0] <= now:
            said = "" if record.trouble is None else record.trouble.message
            text = f"No node has taken a pod for {no_node[1]:g}s: {said}"
            self._too_late(record, c.PODS_UNSCHEDULABLE, text, "")
        elif settings is not None and found is not None and found[0] <= now:
            is_start = found[1] == c.WAIT_FOR_START
            seconds = pods_ready.start_timeout(record, settings) if is_start else settings.effective_recovery_timeout
            self._too_late(record, c.PODS_READY_TIMEOUT, f"Exceeded the PodsReady timeout of {seconds:g}s", found[1])
        self._workloads.set_timer(record)

    def _too_late(self, record: WorkloadRecord, reason: str, message: str, cause: str) -> None:
        """Its pods did not start in time: it is tried again later, or not at all any more."""
        strategy, requeues = self._workloads.requeuing, (record.requeue_count or 0) + 1
        limit = strategy.backoff_limit_count
        if limit is not None and requeues > limit:
            text = f"Deactivated after {limit} requeues: the pods were never ready in time"
            self.request_deactivation(record, c.REQUEUING_LIMIT_EXCEEDED, text)
            return
        at = int(self._timers.now() + pods_ready.backoff_seconds(requeues, strategy, self._rng))
        record.count_requeue()
        record.requeue_not_before(at)
        self._workloads.evict(record, reason, message, cause)

    def _execution_limit(self, record: WorkloadRecord) -> None:
        seconds = record.seen.spec.maximum_execution_time_seconds
        text = f"Exceeded the maximum execution time of {seconds}s"
        record.forget_past_seconds()
        self._outbox.event(record, "Warning", c.MAXIMUM_EXECUTION_TIME_EXCEEDED, text)
        self.request_deactivation(record, c.MAXIMUM_EXECUTION_TIME_EXCEEDED, text)

    def reservation_rejected(self, record: WorkloadRecord, message: str, retry_seconds: float) -> None:
        """The API server rejects the status. A reservation that it does not have is withdrawn, and made again later."""
        if record.place is not WorkloadPlace.QUOTA_RESERVED or record.is_evicted:
            return
        written = record.seen.status.conditions
        if not any(one.type == c.QUOTA_RESERVED and one.status == "True" for one in written):
            # Its quota is free at once: without a pause it would get it in the next cycle, and be rejected again.
            record.requeue_not_before(math.ceil(self._timers.now() + retry_seconds))
            text = f"The reservation was not written: {message}"
            self._workloads.withdraw(record, c.PENDING_EVALUATION, text)

    def admission_withdrawn(self, record: WorkloadRecord, before: WorkloadStatus) -> None:
        """An admission is gone from the status. If we have not taken it back ourselves, somebody else wants it back."""
        if (
            record.place is not WorkloadPlace.QUOTA_RESERVED
            or record.is_evicted
            or record.admission != before.admission
        ):
            return
        if record.is_admitted:
            self._workloads.evict(record, c.ADMISSION_WITHDRAWN, _WITHDRAWN)
        else:
            self._workloads.withdraw(record, c.PENDING_EVALUATION, _WITHDRAWN)

    def admission_missing(self, record: WorkloadRecord) -> None:
        """It was taken out while nobody looked: in whose quota its pods run is not known any more."""
        if not record.is_evicted:
            self._workloads.evict(record, c.ADMISSION_WITHDRAWN, _WITHDRAWN)

    # --- deactivation -------------------------------------------------------------------------------------------------

    def request_deactivation(self, record: WorkloadRecord, reason: str, message: str) -> None:
        """Ask for spec.active=false; the rest follows when that is seen."""
        record.set_condition(c.DEACTIVATION_TARGET, True, reason, message, self._timers.now())
        self._outbox.changed(record)
        self._outbox.deactivate(record)
        self._timers.set(record, None)

    def deactivated(self, record: WorkloadRecord) -> None:
        """spec.active became false: the quota is free at once, even while pods still terminate."""
        target = record.conditions.get(c.DEACTIVATION_TARGET)
        cause = target.reason if target is not None and target.is_true else ""
        if not record.is_evicted:
            message = target.message if target is not None else "The workload is deactivated"
            had_quota = record.has_reservation
            self._workloads.record_eviction(record, c.DEACTIVATED, message, cause, had_quota=had_quota)
        record.remove_condition(c.DEACTIVATION_TARGET)
        record.forget_requeues()
        self._workloads.drop(record)
        record.rest(WorkloadPlace.INACTIVE)
        if not record.has_reservation:
            self._queues.report(record, c.DEACTIVATED, "The workload is deactivated")
        self._outbox.changed(record)

    def reactivated(self, record: WorkloadRecord) -> None:
        """spec.active became true again. While its pods still terminate it has to wait for their end."""
        if not record.has_reservation:
            self._queues.place(record)

    # --- the end of an eviction ---------------------------------------------------------------------------------------

    def pods_gone(self, record: WorkloadRecord) -> None:
        """Its job counts no pods any more. Where nodes are asked, quota comes back with the room: else those for whom
        it had to go would find no room, and it would take its quota back."""
        queue = self._workloads.tree.queues.get(record.cluster_queue)
        evicted = record.conditions.get(c.EVICTED)
        if queue is None or evicted is None or not record.is_evicted or not self._workloads.node_fit.asks(queue):
            self._workloads.complete(record)
            return
        until = evicted.since + _LONGEST_LEAVING_SECONDS
        if self._workloads.node_fit.room.is_on_nodes(record.key) and self._timers.now() < until:
            self._leaving = {uid: one for uid, one in self._leaving.items() if one.has_reservation}
            self._leaving[record.uid] = record
            self._timers.set(record, until)
        else:
            self._complete(record)

    def _complete(self, record: WorkloadRecord) -> None:
        self._leaving.pop(record.uid, None)
        self._workloads.complete(record)

    # --- readiness ----------------------------------------------------------------------------------------------------

    def note_readiness(self, record: WorkloadRecord, is_ready: bool) -> None:
        if self._workloads.pods_ready is None or record.place is not WorkloadPlace.QUOTA_RESERVED:
            return
        if self._workloads.set_pods_ready(record, is_ready) == c.STARTED:
            self._observe_start(record)
        self._workloads.set_timer(record)

    def note_trouble(self, record: WorkloadRecord) -> None:
        """Some of its pods fit on no node, or do again, or the last one has left its node."""
        if record.uid in self._leaving:
            self.pods_gone(record)
            return
        if record.place is not WorkloadPlace.QUOTA_RESERVED or record.is_evicted:
            return
        self._see_trouble(record)
        if self._workloads.pods_ready is not None and not record.conditions.is_true(c.PODS_READY):
            self._workloads.set_pods_ready(record, False)
        self._workloads.set_timer(record)

    def _see_trouble(self, record: WorkloadRecord) -> None:
        record.note_trouble(self._workloads.node_fit.room.trouble(record.key), self._timers.now())

    def _observe_start(self, record: WorkloadRecord) -> None:
        labels = queue_labels(record)
        now, admitted = self._timers.now(), record.conditions.get(c.ADMITTED)
        assert admitted is not None
        self._outbox.observe("ready_wait_time_seconds", now - record.waiting_since, labels)
        self._outbox.observe("admitted_until_ready_wait_time_seconds", now - admitted.since, labels)

    # --- admission checks ---------------------------------------------------------------------------------------------

    def checks_changed(self, record: WorkloadRecord) -> None:
        """Rejected wins over Retry, Retry over Ready."""
        if record.place is not WorkloadPlace.QUOTA_RESERVED or record.is_evicted:
            return
        rejected, retried = record.checks_in(REJECTED), record.checks_in(RETRY)
        if rejected:
            text = f"Admission check(s) rejected the workload: {', '.join(rejected)}"
            self._outbox.event(record, "Warning", "AdmissionCheckRejected", text)
            self.request_deactivation(record, c.ADMISSION_CHECK, text)
        elif retried:
            at = record.checks_retry_at
            if at is not None and at > max(self._timers.now(), record.requeue_at or 0):
                record.requeue_not_before(at)
            text = f"At least one admission check wants a retry: {', '.join(retried)}"
            self._workloads.evict(record, c.ADMISSION_CHECK, text)
        else:
            self._workloads.admit_if_ready(record)

    # --- stopped queues -----------------------------------------------------------------------------------------------

    def stop_if_wanted(self, record: WorkloadRecord) -> None:
        """Of a workload with quota, if its ClusterQueue or LocalQueue is stopped."""
        queue = self._workloads.tree.queues[record.cluster_queue]
        local = self._queues.local_queues[record.local_queue_key]
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
                self._workloads.withdraw(record, c.SUSPENDED, message)
        elif drain:
            self._workloads.evict(record, reason, message)
