"""Where a workload without quota belongs (its queue, back-off, nowhere), and who a release of quota may help."""

from __future__ import annotations

from pilotage.jobs import checks
from pilotage.jobs import conditions as c
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.pending import PendingWorkloads
from pilotage.jobs.record import AFRESH, WorkloadPlace, WorkloadRecord
from pilotage.jobs.rejections import Rejection
from pilotage.jobs.shared_pending import SharedPending
from pilotage.jobs.world import World

_AFTER_RESTART = {
    c.CLUSTER_QUEUE_STOPPED: c.CLUSTER_QUEUE_RESTARTED,
    c.LOCAL_QUEUE_STOPPED: c.LOCAL_QUEUE_RESTARTED,
}
_WITH_AMOUNTS = (c.WAITING_FOR_QUOTA, c.WAITING_FOR_PREEMPTED, c.WAITING_FOR_PODS_READY)
_QUIET_SECONDS = 300
_SET_BY_QUEUES = (c.SUSPENDED, c.MISCONFIGURED, c.DEACTIVATED, c.ADMISSION_GATED)


class Queueing:
    def __init__(self, world: World) -> None:
        self._world = world

    # --- one workload -------------------------------------------------------------------------------------------------

    def place(self, record: WorkloadRecord) -> None:
        """Put a workload that holds no quota where it belongs now."""
        world = self._world
        queue = world.queue_of(record)
        is_sticky = queue is not None and queue.pending.is_sticky(record)
        self.unqueue(record)
        record.cluster_queue = queue.name if queue is not None else ""
        if queue is not None and checks.sync(record, queue, world.now()):
            world.outbox.changed(record)
        self._end_backoff(record, queue)
        obstacle = self._obstacle(record, queue)
        if queue is None or self._is_out(record):
            record.place = WorkloadPlace.UNQUEUED
        elif not record.is_eligible(world.now()):
            queue.pending.add_backoff(record)
            world.timers.set(record, record.requeue_at)
        else:
            queue.pending.add(record, world.order_key(record))
            if is_sticky:
                queue.pending.stick(record)
            world.mark_dirty(queue)
        if obstacle is not None or not self._join_rejected(record, queue):
            self._say(record, obstacle)
        world.touch(record)

    def _join_rejected(self, record: WorkloadRecord, queue: QueueState | None) -> bool:
        """Its like was refused, and nothing has changed since: it waits for the same."""
        group = record.group
        if queue is None or group is None or not group.is_inadmissible or group.known is None:
            return False
        group.unreported.pop(record.uid, None)
        record.rejection = group.known.rejection.now(queue.node)
        self.report_rejection(record, record.rejection)
        return True

    def unqueue(self, record: WorkloadRecord) -> None:
        """Take a workload out of whatever queue it is in."""
        if record.place in (WorkloadPlace.QUEUED, WorkloadPlace.BACKOFF):
            queue = self._world.queues[record.cluster_queue]
            queue.pending.remove(record)
            if queue.pending.active_count:
                self._world.mark_dirty(queue)
            self._world.touch(record)
            record.place = WorkloadPlace.UNQUEUED
            record.resumption = AFRESH
        self._world.timers.set(record, None)

    def exchange(self, queue: QueueState, pending: PendingWorkloads | SharedPending) -> None:
        """Let everybody who waits in a queue wait in another order."""
        records = list(queue.pending.records())
        for record in records:
            self.unqueue(record)
        queue.pending = pending
        for record in records:
            self.place(record)

    def report_rejection(self, record: WorkloadRecord, rejection: Rejection) -> bool:
        """As `tell`; amounts that change all the time are told now and then."""
        known = record.conditions.get(c.QUOTA_RESERVED)
        is_repeated = known is not None and known.reason == rejection.reason and rejection.reason in _WITH_AMOUNTS
        if is_repeated and self._world.now() < record.reported_at + _QUIET_SECONDS:
            return False
        return self.tell(record, rejection.reason, rejection.message)

    def tell(self, record: WorkloadRecord, reason: str, message: str) -> bool:
        """Write why there is no quota. Whether that is news."""
        now = self._world.now()
        news = record.conditions.set(c.QUOTA_RESERVED, False, reason, message, now)
        if not record.conditions.is_false(c.ADMITTED):
            news |= record.conditions.set(c.ADMITTED, False, c.NO_RESERVATION, "The workload has no reservation", now)
        if self._world.pods_ready is not None and record.conditions.get(c.PODS_READY) is None:
            record.conditions.set(c.PODS_READY, False, c.WAIT_FOR_START, "Not all pods are ready or succeeded", now)
        if news:
            record.reported_at = now
            self._world.outbox.changed(record)
        return news

    def _is_out(self, record: WorkloadRecord) -> bool:
        local = self._world.local_queues[record.local_queue_key]
        return local.is_stopped or record.conditions.is_true(c.WAITING_FOR_REPLACEMENT_PODS)

    def _obstacle(self, record: WorkloadRecord, queue: QueueState | None) -> tuple[str, str] | None:
        """What keeps the scheduler from even looking at it; the first that applies."""
        local = self._world.local_queues[record.local_queue_key]
        if local.obj is None:
            return c.MISCONFIGURED, f"LocalQueue {record.queue_name} doesn't exist"
        if local.is_stopped:
            return c.SUSPENDED, f"LocalQueue {record.queue_name} is stopped"
        if queue is None:
            return c.MISCONFIGURED, f"ClusterQueue {local.obj.spec.cluster_queue} doesn't exist"
        if not queue.is_active:
            return c.SUSPENDED, f"ClusterQueue {queue.name} is inactive: {queue.message}"
        if (fault := _fault_of_pods(record)) is not None:
            return fault
        if record.conditions.is_true(c.WAITING_FOR_REPLACEMENT_PODS):
            return c.ADMISSION_GATED, "The pod group waits for replacement pods"
        return None

    def _say(self, record: WorkloadRecord, obstacle: tuple[str, str] | None) -> None:
        if obstacle is not None:
            # A queue that is missing or stopped is not the workload's fault; what its pods are like is.
            if self.tell(record, *obstacle) and obstacle == _fault_of_pods(record):
                self._world.outbox.event(record, "Warning", *obstacle)
            return
        known = record.conditions.get(c.QUOTA_RESERVED)
        if known is None or known.is_true or known.reason in _SET_BY_QUEUES:
            self.tell(record, c.PENDING_EVALUATION, "The workload waits for its turn")

    def refresh_reason(self, record: WorkloadRecord) -> None:
        """The queue became usable or unusable."""
        self._say(record, self._obstacle(record, self._world.queue_of(record)))

    # --- after an eviction --------------------------------------------------------------------------------------------

    def _end_backoff(self, record: WorkloadRecord, queue: QueueState | None) -> None:
        """Lift Requeued=False if what set it is over."""
        now = self._world.now()
        requeued = record.conditions.get(c.REQUEUED)
        is_over = record.requeue_at is None or record.requeue_at <= now
        if requeued is None or requeued.is_true:
            if record.requeue_at is not None and is_over:
                record.requeue_at = None
                self._world.outbox.changed(record)
            return
        reason = self._way_back(record, queue, requeued.reason, is_over)
        if reason:
            if is_over:
                record.requeue_at = None
            record.conditions.set(c.REQUEUED, True, reason, f"The workload is queued again: {reason}", now)
            self._world.outbox.changed(record)

    def _way_back(self, record: WorkloadRecord, queue: QueueState | None, cause: str, is_over: bool) -> str:
        if cause.startswith(c.DEACTIVATED):
            return c.REACTIVATED
        if cause == c.CLUSTER_QUEUE_STOPPED:
            return "" if queue is not None and queue.is_stopped else _AFTER_RESTART[cause]
        if cause == c.LOCAL_QUEUE_STOPPED:
            local = self._world.local_queues[record.local_queue_key]
            return "" if local.is_stopped else _AFTER_RESTART[cause]
        return c.BACKOFF_FINISHED if is_over else ""

    # --- what may help ------------------------------------------------------------------------------------------------

    def released(self, queue: QueueState) -> None:
        """Quota became free, or somebody may be preempted who could not be: look again at those who lack quota."""
        for other in self._world.tree_of(queue):
            other.generation += 1
            other.pending.wake_on_release()
            if other.pending.may_have_more(other.generation):
                self._world.mark_dirty(other)

    def reconfigured(self, queue: QueueState) -> None:
        """Anything may have become possible in this queue."""
        queue.generation += 1
        if queue.is_strict:
            queue.pending.unstick()
        queue.pending.wake_all()
        if queue.pending.active_count:
            self._world.mark_dirty(queue)


def _fault_of_pods(record: WorkloadRecord) -> tuple[str, str] | None:
    """Why the API server would refuse its pods."""
    rejection = record.shape.rejection
    return None if rejection is None else (rejection.reason, rejection.message)
