"""Changes of queues, cohorts, flavors, checks and namespaces: noted one by one, applied together.

Applying builds the quota trees anew, re-judges which ClusterQueues are usable, moves workloads whose queue came, went
or was stopped, and wakes everybody in the trees concerned: a change of configuration may help anybody there.
"""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.jobs import checks
from pilotage.jobs import conditions as c
from pilotage.jobs.admission_shares import AdmissionShares
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.flavors import Flavor
from pilotage.jobs.lifecycle import Lifecycle
from pilotage.jobs.pending import PendingWorkloads
from pilotage.jobs.queueing import Queueing
from pilotage.jobs.quota import QuotaNode
from pilotage.jobs.record import WorkloadPlace, WorkloadRecord
from pilotage.jobs.shared_pending import SharedPending
from pilotage.jobs.stopping import Stopping
from pilotage.jobs.world import World
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from pilotage.model.selectors import selector_matches

_WAITING = (WorkloadPlace.UNQUEUED, WorkloadPlace.QUEUED, WorkloadPlace.BACKOFF)


class Reconfiguration:
    def __init__(self, world: World, queueing: Queueing, lifecycle: Lifecycle, stopping: Stopping) -> None:
        self._world = world
        self._queueing = queueing
        self._lifecycle = lifecycle
        self._stopping = stopping
        self._is_due = False
        self._queues: dict[str, None] = {}
        self._cohorts: dict[str, None] = {}
        self._local_queues: dict[str, None] = {}
        self.unassigned: dict[str, WorkloadRecord] = {}
        """Workloads with quota in a ClusterQueue that is not known (yet)."""

    # --- noting -------------------------------------------------------------------------------------------------------

    def set_queue(self, obj: ClusterQueue) -> None:
        known = self._world.queues.get(obj.name)
        if known is not None and not known.is_gone and known.obj.spec == obj.spec:
            leaving = obj.metadata.deletion_timestamp != known.obj.metadata.deletion_timestamp
            known.obj = obj
            if not leaving:
                return
        elif known is not None:
            self._note_tree(known.node)
            known.update(obj)
        else:
            self._world.queues[obj.name] = QueueState(obj)
        self._note_queue(obj.name)

    def delete_queue(self, name: str) -> None:
        queue = self._world.queues.get(name)
        if queue is None:
            return
        for record in list(queue.pending.records()):
            self._queueing.unqueue(record)
        queue.is_gone = True
        if not queue.reserving:
            self._world.emptied[name] = None
        self._note_queue(name)

    def _remove_emptied(self) -> None:
        """Deleted ClusterQueues lend their quota until their last workload is gone."""
        emptied, self._world.emptied = self._world.emptied, {}
        for name in emptied:
            queue = self._world.queues[name]
            if queue.is_gone and not queue.reserving:
                self._note_tree(queue.node)
                del self._world.queues[name]
                self._is_due = True

    def _note_tree(self, node: QuotaNode) -> None:
        """Everybody who shared quota with it until now: what it used or kept from them may be theirs."""
        self._queues |= dict.fromkeys(leaf.name for leaf in node.root.leaves())

    def _note_queue(self, name: str) -> None:
        self._is_due = True
        self._queues[name] = None
        for key, local in self._world.local_queues.items():
            if local.obj is not None and local.obj.spec.cluster_queue == name:
                self._local_queues[key] = None

    def set_local_queue(self, obj: LocalQueue) -> None:
        local = self._world.local_queue(obj.key)
        changed = local.obj is None or local.obj.spec != obj.spec
        local.obj = obj
        if changed:
            self._note_local_queue(obj.key)

    def delete_local_queue(self, key: str) -> None:
        self._world.local_queue(key).obj = None
        self._note_local_queue(key)

    def _note_local_queue(self, key: str) -> None:
        self._is_due = True
        self._local_queues[key] = None

    def set_cohort(self, obj: Cohort) -> None:
        known = self._world.cohorts.get(obj.name)
        self._world.cohorts[obj.name] = obj
        if known is None or known.spec != obj.spec:
            self._note_cohort(obj.name)

    def delete_cohort(self, name: str) -> None:
        if self._world.cohorts.pop(name, None) is not None:
            self._note_cohort(name)

    def _note_cohort(self, name: str) -> None:
        self._is_due = True
        self._cohorts[name] = None
        for queue in self._world.queues.values():
            if any(node.name == name for node in queue.node.ancestors()):
                self._note_tree(queue.node)

    def set_flavor(self, obj: ResourceFlavor) -> None:
        known = self._world.flavors.get(obj.name)
        if known is None or known.spec != obj.spec:
            self._world.flavors[obj.name] = Flavor(obj)
            self._note_users(obj.name)

    def delete_flavor(self, name: str) -> None:
        if self._world.flavors.pop(name, None) is not None:
            self._note_users(name)

    def _note_users(self, flavor: str) -> None:
        self._is_due = True
        self._queues |= {queue.name: None for queue in self._world.queues.values() if flavor in queue.flavor_names}

    def set_check(self, obj: AdmissionCheck) -> None:
        self._world.checks[obj.name] = obj
        self._note_checked(obj.name)

    def delete_check(self, name: str) -> None:
        if self._world.checks.pop(name, None) is not None:
            self._note_checked(name)

    def _note_checked(self, check: str) -> None:
        self._is_due = True
        self._queues |= {
            queue.name: None
            for queue in self._world.queues.values()
            if any(rule.name == check for rule in queue.check_rules)
        }

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        before = self._world.namespaces.get(name, {})
        self._world.namespaces[name] = labels
        for queue in self._world.queues.values():
            selector = queue.obj.spec.namespace_selector
            if selector_matches(selector, labels) and not selector_matches(selector, before):
                self._is_due = True
                self._queues[queue.name] = None

    # --- applying -----------------------------------------------------------------------------------------------------

    def apply(self) -> None:
        if self._world.emptied:
            self._remove_emptied()
        if not self._is_due:
            return
        self._is_due = False
        world = self._world
        was_active = {queue.name: queue.is_active for queue in world.queues.values()}
        world.rebuild()
        touched = self._touched()
        if world.shares is not None:
            self._share_admission(world.shares)
        self._house()
        for queue in touched:
            self._stop_holders(queue)
        local_queues, self._local_queues = self._local_queues, {}
        for key in local_queues:
            self._local_queue_changed(key)
        for queue in touched:
            self._queueing.reconfigured(queue)
            self._requeue_drained(queue)
            self._sync_checks(queue)
            world.changed_queues[queue.name] = None
        for queue in world.queues.values():
            if was_active.get(queue.name) is not queue.is_active:
                self._activity_changed(queue)

    def _touched(self) -> list[QueueState]:
        """Everybody in the trees of what changed."""
        queues, self._queues = self._queues, {}
        cohorts, self._cohorts = self._cohorts, {}
        roots: set[int] = set()
        for queue in self._world.queues.values():
            above = (node.name for node in queue.node.ancestors())
            if queue.name in queues or any(name in cohorts for name in above):
                roots.add(id(queue.node.root))
        for queue in self._world.queues.values():
            if queue.obj.spec.cohort_name in cohorts:
                roots.add(id(queue.node.root))
        return [queue for queue in self._world.queues.values() if id(queue.node.root) in roots]

    def _share_admission(self, shares: AdmissionShares) -> None:
        """Have one line per LocalQueue where the ClusterQueue wants that, and keep account of those."""
        queues = self._world.queues
        for queue in queues.values():
            if queue.wants_shares is not isinstance(queue.pending, SharedPending):
                lines = SharedPending(shares.share) if queue.wants_shares else PendingWorkloads()
                self._queueing.exchange(queue, lines)
        known = [local.obj for local in self._world.local_queues.values() if local.obj is not None]
        wanting = {queue.name for queue in queues.values() if queue.wants_shares}
        shares.keep((obj for obj in known if obj.spec.cluster_queue in wanting), self._world.now())

    def _house(self) -> None:
        """Book what workloads hold in ClusterQueues that are known by now."""
        for record in list(self.unassigned.values()):
            queue = self._world.queues.get(record.cluster_queue)
            if queue is not None:
                del self.unassigned[record.uid]
                self._world.inspected = record
                self._stopping.take_over(record, queue)
        self._world.inspected = None

    def _stop_holders(self, queue: QueueState) -> None:
        if queue.is_stopped and not queue.is_gone:
            for record in list(queue.reserving.values()):
                self._stopping.stop_if_wanted(record)

    def _local_queue_changed(self, key: str) -> None:
        local = self._world.local_queue(key)
        self._world.changed_local_queues[key] = None
        for record in list(local.members.values()):
            self._world.inspected = record
            if record.place in _WAITING and record.uid not in self.unassigned:
                self._queueing.place(record)
            elif record.place is WorkloadPlace.QUOTA_RESERVED and local.is_stopped:
                self._stopping.stop_if_wanted(record)
        self._world.inspected = None
        if local.obj is None and not local.members:
            del self._world.local_queues[key]

    def _requeue_drained(self, queue: QueueState) -> None:
        for record in list(queue.pending.backoff.values()):
            if record.conditions.is_false(c.REQUEUED):
                self._queueing.place(record)

    def _sync_checks(self, queue: QueueState) -> None:
        now = self._world.now()
        for record in [*queue.reserving.values(), *queue.pending.records()]:
            self._world.inspected = record
            if checks.sync(record, queue, now):
                self._world.outbox.changed(record)
                self._stopping.checks_changed(record)
        self._world.inspected = None

    def _activity_changed(self, queue: QueueState) -> None:
        self._world.changed_queues[queue.name] = None
        for record in list(queue.pending.records()):
            self._queueing.refresh_reason(record)
        for key, local in self._world.local_queues.items():
            if local.obj is not None and local.obj.spec.cluster_queue == queue.name:
                self._world.changed_local_queues[key] = None
