"""Who waits where: LocalQueues, the pending workloads of every ClusterQueue, and which of them a change may help.

`Queues` is the only writer of all that. A workload without quota has one place: in the queue that its LocalQueue leads
to, in back-off there, or in none (the queue is missing or stopped, or its pod group is incomplete). A ClusterQueue is
*dirty* if something happened to it since the last admission cycle: only then is it worth another cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from pilotage.jobs import conditions as c
from pilotage.jobs.admission_shares import AdmissionShares
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import Outbox
from pilotage.jobs.node_fit import NodeFit
from pilotage.jobs.ordering import queue_order
from pilotage.jobs.pending import PendingWorkloads
from pilotage.jobs.quota import Amounts
from pilotage.jobs.quota_tree import QuotaTree
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.rejections import QuotaRejection
from pilotage.jobs.room import NoRoom
from pilotage.jobs.shared_pending import SharedPending
from pilotage.jobs.timers import Timers
from pilotage.model.kueue import AdmissionFairSharingStatus, LocalQueue
from pilotage.model.selectors import selector_matches

_AFTER_RESTART: Final = {
    c.CLUSTER_QUEUE_STOPPED: c.CLUSTER_QUEUE_RESTARTED,
    c.LOCAL_QUEUE_STOPPED: c.LOCAL_QUEUE_RESTARTED,
}
_WITH_AMOUNTS: Final = (c.WAITING_FOR_QUOTA, c.WAITING_FOR_NODES, c.WAITING_FOR_PREEMPTED, c.WAITING_FOR_PODS_READY)
_QUIET_SECONDS: Final = 300
_SET_BY_QUEUES: Final = (c.SUSPENDED, c.MISCONFIGURED, c.DEACTIVATED, c.ADMISSION_GATED)

Pending = PendingWorkloads | SharedPending


class LocalQueueState:
    """A LocalQueue and all unfinished workloads that name it; `obj` is None as long as it does not exist."""

    __slots__ = ("key", "members", "obj")

    def __init__(self, key: str) -> None:
        self.key = key
        self.obj: LocalQueue | None = None
        self.members: dict[str, WorkloadRecord] = {}

    @property
    def is_stopped(self) -> bool:
        return self.obj is not None and self.obj.spec.stop_policy in ("Hold", "HoldAndDrain")


class Queues:
    def __init__(
        self, tree: QuotaTree, timers: Timers, outbox: Outbox, configuration: QueueingConfiguration, node_fit: NodeFit
    ) -> None:
        self._tree = self.tree = tree
        self._timers = timers
        self._outbox = outbox
        self.node_fit = node_fit
        self._reports_pods_ready = configuration.wait_for_pods_ready is not None
        self.order = queue_order(configuration)
        sharing = configuration.admission_fair_sharing
        self._shares = AdmissionShares(sharing) if sharing is not None else None
        self._local_queues: dict[str, LocalQueueState] = {}
        self.local_queues: Mapping[str, LocalQueueState] = self._local_queues
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._pending: defaultdict[str, Pending] = defaultdict(PendingWorkloads)
        self._dirty: dict[str, None] = {}
        self.dirty: Mapping[str, None] = self._dirty
        """Names of the ClusterQueues that something happened to since the last admission cycle."""
        self._preemption_skips: dict[str, int] = {}

    # --- looking ------------------------------------------------------------------------------------------------------

    def pending(self, queue: QueueState) -> Pending:
        return self._pending[queue.name]

    def queue_of(self, record: WorkloadRecord) -> QueueState | None:
        """The ClusterQueue that the workload's LocalQueue leads to."""
        local = self._local_queues.get(record.local_queue_key)
        if local is None or local.obj is None:
            return None
        found = self._tree.queues.get(local.obj.spec.cluster_queue)
        return None if found is None or found.is_gone else found

    def selects(self, queue: QueueState, namespace: str) -> bool:
        return selector_matches(queue.obj.spec.namespace_selector, self._namespaces.get(namespace, {}))

    def preemption_skips(self, queue: QueueState) -> int:
        """Heads of the last cycle that found victims and lost them to others."""
        return self._preemption_skips.get(queue.name, 0)

    # --- one workload -------------------------------------------------------------------------------------------------

    def place(self, record: WorkloadRecord) -> None:
        """Put a workload that has no quota where it belongs now."""
        now, queue = self._timers.now(), self.queue_of(record)
        is_sticky = queue is not None and self._pending[queue.name].is_sticky(record)
        self.unqueue(record)
        record.assign_queue(queue.name if queue is not None else "")
        if queue is not None and queue.sync_checks(record, now):
            self._outbox.changed(record)
        self._end_backoff(record, queue)
        obstacle = self._obstacle(record, queue)
        if queue is None or self._is_out(record):
            record.leave_queue()
            self.node_fit.forget(record)
        elif not record.is_eligible(now):
            self._pending[queue.name].add_backoff(record)
            self._timers.set(record, record.requeue_at)
        else:
            pending = self._pending[queue.name]
            pending.add(record, self.order.key(record))
            if is_sticky:
                pending.stick(record)
            self.mark_dirty(queue)
        if obstacle is not None or not self._join_rejected(record, queue):
            self._report_obstacle(record, obstacle)
        self._outbox.queues_changed(record)

    def _join_rejected(self, record: WorkloadRecord, queue: QueueState | None) -> bool:
        """Its like was rejected, and nothing has changed since: it waits for the same."""
        group = record.group
        if queue is None or group is None or not group.is_inadmissible or group.known is None:
            return False
        group.reported(record)
        rejection = group.known.rejection.now(queue.node)
        record.reject(rejection)
        self.report_rejection(record, rejection)
        return True

    def unqueue(self, record: WorkloadRecord) -> None:
        """Take a workload out of whatever queue it is in."""
        if record.is_queued:
            queue = self._tree.queues[record.cluster_queue]
            pending = self._pending[queue.name]
            pending.remove(record)
            if pending.active_count:
                self.mark_dirty(queue)
            self._outbox.queues_changed(record)
            record.leave_queue()
        self._timers.set(record, None)

    def report_rejection(self, record: WorkloadRecord, rejection: QuotaRejection) -> bool:
        """As `report`; amounts that change all the time are reported now and then."""
        known = record.conditions.get(c.QUOTA_RESERVED)
        is_repeated = known is not None and known.reason == rejection.reason and rejection.reason in _WITH_AMOUNTS
        if is_repeated and self._timers.now() < record.reported_at + _QUIET_SECONDS:
            return False
        return self.report(record, rejection.reason, rejection.message)

    def report(self, record: WorkloadRecord, reason: str, message: str) -> bool:
        """Write why there is no quota. Whether that is new."""
        now = self._timers.now()
        is_new = record.report_pending(reason, message, now)
        if self._reports_pods_ready and record.conditions.get(c.PODS_READY) is None:
            record.set_condition(c.PODS_READY, False, c.WAIT_FOR_START, "Not all pods are ready or succeeded", now)
        if is_new:
            self._outbox.changed(record)
        return is_new

    def _is_out(self, record: WorkloadRecord) -> bool:
        local = self._local_queues[record.local_queue_key]
        return local.is_stopped or record.conditions.is_true(c.WAITING_FOR_REPLACEMENT_PODS)

    def _obstacle(self, record: WorkloadRecord, queue: QueueState | None) -> tuple[str, str] | None:
        """What keeps the scheduler from even looking at it; the first that applies."""
        local = self._local_queues[record.local_queue_key]
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

    def _report_obstacle(self, record: WorkloadRecord, obstacle: tuple[str, str] | None) -> None:
        if obstacle is not None:
            # A queue that is missing or stopped is not the workload's fault; what its pods are like is.
            if self.report(record, *obstacle) and obstacle == _fault_of_pods(record):
                self._outbox.event(record, "Warning", *obstacle)
            return
        known = record.conditions.get(c.QUOTA_RESERVED)
        if known is None or known.is_true or known.reason in _SET_BY_QUEUES:
            self.report(record, c.PENDING_EVALUATION, "The workload waits for its turn")

    # --- after an eviction --------------------------------------------------------------------------------------------

    def _end_backoff(self, record: WorkloadRecord, queue: QueueState | None) -> None:
        """Lift Requeued=False if what set it is over."""
        now = self._timers.now()
        requeued = record.conditions.get(c.REQUEUED)
        is_over = record.requeue_at is None or record.requeue_at <= now
        if requeued is None or requeued.is_true:
            if record.requeue_at is not None and is_over:
                record.end_backoff()
                self._outbox.changed(record)
            return
        reason = self._way_back(record, queue, requeued.reason, is_over)
        if reason:
            if is_over:
                record.end_backoff()
            record.set_condition(c.REQUEUED, True, reason, f"The workload is queued again: {reason}", now)
            self._outbox.changed(record)

    def _way_back(self, record: WorkloadRecord, queue: QueueState | None, cause: str, is_over: bool) -> str:
        if cause.startswith(c.DEACTIVATED):
            return c.REACTIVATED
        if cause == c.CLUSTER_QUEUE_STOPPED:
            return "" if queue is not None and queue.is_stopped else _AFTER_RESTART[cause]
        if cause == c.LOCAL_QUEUE_STOPPED:
            local = self._local_queues[record.local_queue_key]
            return "" if local.is_stopped else _AFTER_RESTART[cause]
        return c.BACKOFF_FINISHED if is_over else ""

    # --- what may help ------------------------------------------------------------------------------------------------

    def mark_dirty(self, queue: QueueState) -> None:
        self._dirty[queue.name] = None

    def take_dirty(self) -> list[QueueState]:
        """The dirty ClusterQueues, which are clean from now on."""
        names = list(self._dirty)
        self._dirty.clear()
        return [self._tree.queues[name] for name in names if name in self._tree.queues]

    def released(self, queue: QueueState) -> None:
        """Quota became free, or more may be preempted than before: look again at those who lack quota."""
        for other in self._tree.tree_of(queue):
            self._tree.renew(other)
            pending = self._pending[other.name]
            pending.wake_on_release()
            if pending.may_have_more(other.generation):
                self.mark_dirty(other)

    def nodes_changed(self, may_fit: Callable[[NoRoom], bool]) -> None:
        """Look again at those who lack room on nodes and may have it now."""
        for queue in self._tree.queues.values():
            pending = self._pending[queue.name]
            pending.wake_on_room(may_fit)
            if pending.active_count:
                self.mark_dirty(queue)

    def unblocked(self) -> None:
        """With blockAdmission: those that waited may go on; what was found out while none could have quota is void."""
        for queue in self._tree.queues.values():
            if self._pending[queue.name].active_count:
                self._tree.renew(queue)
                self.mark_dirty(queue)

    def reconfigured(self, queue: QueueState) -> None:
        """Anything may have become possible in this queue."""
        self._tree.renew(queue)
        pending = self._pending[queue.name]
        if queue.is_strict:
            pending.unstick()
        pending.wake_all()
        if pending.active_count:
            self.mark_dirty(queue)
        for record in list(pending.backoff.values()):
            if record.conditions.is_false(c.REQUEUED):
                self.place(record)

    def activity_changed(self, queue: QueueState) -> None:
        """The ClusterQueue became usable or unusable."""
        self._outbox.cluster_queue_changed(queue.name)
        for record in list(self._pending[queue.name].records()):
            self._report_obstacle(record, self._obstacle(record, self.queue_of(record)))
        for key in self.local_queues_of(queue.name):
            self._outbox.local_queue_changed(key)

    def set_preemption_skips(self, skips: Mapping[str, int]) -> None:
        self._preemption_skips |= skips

    # --- ClusterQueues ------------------------------------------------------------------------------------------------

    def drain(self, queue: QueueState) -> None:
        """The ClusterQueue is deleted."""
        for record in list(self._pending[queue.name].records()):
            self.unqueue(record)

    def forget(self, queue: QueueState) -> None:
        """The last of its quota is given back."""
        self._pending.pop(queue.name, None)
        self._preemption_skips.pop(queue.name, None)

    # --- LocalQueues and namespaces -----------------------------------------------------------------------------------

    def local_queue(self, key: str) -> LocalQueueState:
        """Of any name: workloads may name one that does not exist."""
        found = self._local_queues.get(key)
        if found is None:
            found = self._local_queues[key] = LocalQueueState(key)
        return found

    def local_queues_of(self, cluster_queue: str) -> list[str]:
        found = self._local_queues.items()
        return [key for key, one in found if one.obj is not None and one.obj.spec.cluster_queue == cluster_queue]

    def set_local_queue(self, obj: LocalQueue) -> bool:
        """Whether it says something else now."""
        local = self.local_queue(obj.key)
        is_new = local.obj is None or local.obj.spec != obj.spec
        local.obj = obj
        return is_new

    def delete_local_queue(self, key: str) -> None:
        self.local_queue(key).obj = None

    def drop_if_unused(self, key: str) -> None:
        """A LocalQueue that does not exist is known as long as a workload names it."""
        local = self._local_queues.get(key)
        if local is not None and local.obj is None and not local.members:
            del self._local_queues[key]

    def join_local_queue(self, record: WorkloadRecord) -> None:
        self.local_queue(record.local_queue_key).members[record.uid] = record

    def leave_local_queue(self, record: WorkloadRecord) -> None:
        local = self._local_queues.get(record.local_queue_key)
        if local is not None:  # else it is finished, as all others in a queue that is gone
            local.members.pop(record.uid, None)
            self.drop_if_unused(local.key)

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> list[QueueState]:
        """Returns the ClusterQueues that take workloads of the namespace now, and did not before."""
        before = self._namespaces.get(name, {})
        self._namespaces[name] = labels
        found = []
        for queue in self._tree.queues.values():
            selector = queue.obj.spec.namespace_selector
            if selector_matches(selector, labels) and not selector_matches(selector, before):
                found.append(queue)
        return found

    def delete_namespace(self, name: str) -> None:
        self._namespaces.pop(name, None)

    # --- admission fair sharing ---------------------------------------------------------------------------------------

    def apply_shares(self) -> None:
        """Have one line per LocalQueue where the ClusterQueue wants that, and keep account of those."""
        shares = self._shares
        if shares is None:
            return
        for queue in self._tree.queues.values():
            if queue.wants_shares is not isinstance(self._pending[queue.name], SharedPending):
                self._exchange(queue, SharedPending(shares.share) if queue.wants_shares else PendingWorkloads())
        known = [local.obj for local in self._local_queues.values() if local.obj is not None]
        wanting = {queue.name for queue in self._tree.queues.values() if queue.wants_shares}
        shares.keep((obj for obj in known if obj.spec.cluster_queue in wanting), self._timers.now())

    def _exchange(self, queue: QueueState, pending: Pending) -> None:
        """Put all that wait in a queue into another order."""
        records = list(self._pending[queue.name].records())
        for record in records:
            self.unqueue(record)
        self._pending[queue.name] = pending
        for record in records:
            self.place(record)

    def charge(self, record: WorkloadRecord, usage: Amounts) -> None:
        """A workload got quota. What it gets again after an eviction was charged the first time."""
        if self._shares is not None and not record.is_charged:
            record.note_charged()
            self._shares.charge(record.local_queue_key, usage)

    def sample(self) -> None:
        """Take the samples of usage that are due; another workload may be next after it."""
        if self._shares is None:
            return
        for key in self._shares.sample(self._timers.now(), self._admitted_amounts):
            self._outbox.local_queue_changed(key)
            local = self._local_queues[key].obj
            queue = self._tree.queues.get(local.spec.cluster_queue) if local is not None else None
            if queue is not None and self._pending[queue.name].active_count:
                self.mark_dirty(queue)

    def _admitted_amounts(self, local_queue: str) -> dict[str, int]:
        """What the admitted workloads of a LocalQueue use, by resource."""
        total: dict[str, int] = {}
        for record in self.local_queue(local_queue).members.values():
            if record.is_admitted:
                for (_, resource), amount in record.usage.items():
                    total[resource] = total.get(resource, 0) + amount
        return total

    def next_sample(self) -> int | None:
        return None if self._shares is None else self._shares.next_due()

    def share_status(self, local_queue: str) -> AdmissionFairSharingStatus | None:
        return None if self._shares is None else self._shares.status(local_queue)


def _fault_of_pods(record: WorkloadRecord) -> tuple[str, str] | None:
    """Why the API server would reject its pods."""
    rejection = record.shape.rejection
    return None if rejection is None else (rejection.reason, rejection.message)
