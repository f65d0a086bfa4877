"""Changes of queues, cohorts, flavors, checks and namespaces: noted one by one, applied together.

Applying builds the quota trees anew, re-judges which ClusterQueues are usable, moves workloads whose queue came, went
or was stopped, and wakes all workloads in the trees concerned: a change of configuration may help any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.evictions import Evictions
from pilotage.jobs.quota import QuotaNode
from pilotage.jobs.quota_tree import Inspection
from pilotage.jobs.record import WorkloadPlace
from pilotage.jobs.workloads import Workloads
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor


class Reconfiguration:
    def __init__(self, workloads: Workloads, evictions: Evictions, inspection: Inspection) -> None:
        self._workloads = workloads
        self._tree = workloads.tree
        self._queues = workloads.queues
        self._evictions = evictions
        self._inspection = inspection
        self._is_due = False
        self._changed_queues: dict[str, None] = {}
        self._changed_cohorts: dict[str, None] = {}
        self._changed_local_queues: dict[str, None] = {}

    # --- noting -------------------------------------------------------------------------------------------------------

    def set_queue(self, obj: ClusterQueue) -> None:
        known = self._tree.queues.get(obj.name)
        if known is not None and not known.is_gone and known.obj.spec == obj.spec:
            leaving = obj.metadata.deletion_timestamp != known.obj.metadata.deletion_timestamp
            is_read_anew = self._tree.refresh_queue(obj)
            if not leaving and not is_read_anew:
                return
        else:
            if known is not None:
                self._note_tree(known.node)
            self._tree.set_queue(obj)
        self._note_queue(obj.name)

    def delete_queue(self, name: str) -> None:
        queue = self._tree.queues.get(name)
        if queue is not None:
            self._queues.drain(queue)
            self._tree.delete_queue(name)
            self._note_queue(name)

    def _note_tree(self, node: QuotaNode) -> None:
        """All that shared quota with it until now: what it used or kept from them may be theirs."""
        self._changed_queues |= dict.fromkeys(leaf.name for leaf in node.root.leaves)

    def _note_queue(self, name: str) -> None:
        self._is_due = True
        self._changed_queues[name] = None
        self._changed_local_queues |= dict.fromkeys(self._queues.local_queues_of(name))

    def set_local_queue(self, obj: LocalQueue) -> None:
        if self._queues.set_local_queue(obj):
            self._note_local_queue(obj.key)

    def delete_local_queue(self, key: str) -> None:
        self._queues.delete_local_queue(key)
        self._note_local_queue(key)

    def _note_local_queue(self, key: str) -> None:
        self._is_due = True
        self._changed_local_queues[key] = None

    def set_cohort(self, obj: Cohort) -> None:
        known = self._tree.cohort(obj.name)
        self._tree.set_cohort(obj)
        if known is None or known.spec != obj.spec:
            self._note_cohort(obj.name)

    def delete_cohort(self, name: str) -> None:
        if self._tree.delete_cohort(name):
            self._note_cohort(name)

    def _note_cohort(self, name: str) -> None:
        self._is_due = True
        self._changed_cohorts[name] = None
        for queue in self._tree.queues.values():
            if any(node.name == name for node in queue.node.ancestors()):
                self._note_tree(queue.node)

    def set_flavor(self, obj: ResourceFlavor) -> None:
        known = self._tree.flavors.get(obj.name)
        if known is None or known.spec != obj.spec:
            self._tree.set_flavor(obj)
            self._note_users(obj.name)

    def delete_flavor(self, name: str) -> None:
        if self._tree.delete_flavor(name):
            self._note_users(name)

    def _note_users(self, flavor: str) -> None:
        self._note(queue for queue in self._tree.queues.values() if flavor in queue.flavor_names)

    def set_check(self, obj: AdmissionCheck) -> None:
        self._tree.set_check(obj)
        self._note_checked(obj.name)

    def delete_check(self, name: str) -> None:
        if self._tree.delete_check(name):
            self._note_checked(name)

    def _note_checked(self, check: str) -> None:
        queues = self._tree.queues.values()
        self._note(queue for queue in queues if any(rule.name == check for rule in queue.check_rules))

    def _note(self, queues: Iterable[QueueState]) -> None:
        self._is_due = True
        self._changed_queues |= {queue.name: None for queue in queues}

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        if found := self._queues.set_namespace(name, labels):
            self._note(found)

    # --- applying -----------------------------------------------------------------------------------------------------

    def applied(self) -> Workloads:
        """The workloads, their queues and their quota, under the configuration as it is now."""
        if self._tree.emptied:
            self._remove_emptied()
        if self._is_due:
            self._is_due = False
            self._apply()
        return self._workloads

    def _apply(self) -> None:
        was_active = {queue.name: queue.is_active for queue in self._tree.queues.values()}
        self._tree.rebuild()
        touched = self._touched()
        self._queues.apply_shares()
        for record, queue in self._workloads.take_assignable():
            self._inspection.obj = record
            self._evictions.take_over(record, queue)
        self._inspection.obj = None
        for queue in touched:
            if queue.is_stopped and not queue.is_gone:
                for record in list(queue.reserving.values()):
                    self._evictions.stop_if_wanted(record)
        local_queues, self._changed_local_queues = self._changed_local_queues, {}
        for key in local_queues:
            self._local_queue_changed(key)
        for queue in touched:
            self._queues.reconfigured(queue)
            self._sync_checks(queue)
            self._workloads.outbox.cluster_queue_changed(queue.name)
        for queue in self._tree.queues.values():
            if was_active.get(queue.name) is not queue.is_active:
                self._queues.activity_changed(queue)

    def _remove_emptied(self) -> None:
        for queue in self._tree.remove_emptied():
            self._note_tree(queue.node)
            self._queues.forget(queue)
            self._is_due = True

    def _touched(self) -> list[QueueState]:
        """All queues in the trees of what changed."""
        names, self._changed_queues = self._changed_queues, {}
        cohorts, self._changed_cohorts = self._changed_cohorts, {}
        roots: set[int] = set()
        queues = self._tree.queues.values()
        for queue in queues:
            above = (node.name for node in queue.node.ancestors())
            if queue.name in names or queue.obj.spec.cohort_name in cohorts or any(name in cohorts for name in above):
                roots.add(id(queue.node.root))
        return [queue for queue in queues if id(queue.node.root) in roots]

    def _local_queue_changed(self, key: str) -> None:
        local = self._queues.local_queue(key)
        self._workloads.outbox.local_queue_changed(key)
        for record in list(local.members.values()):
            self._inspection.obj = record
            if record.is_waiting and not self._workloads.is_unassigned(record):
                self._queues.place(record)
            elif record.place is WorkloadPlace.QUOTA_RESERVED and local.is_stopped:
                self._evictions.stop_if_wanted(record)
        self._inspection.obj = None
        self._queues.drop_if_unused(key)

    def _sync_checks(self, queue: QueueState) -> None:
        now = self._workloads.timers.now()
        for record in [*queue.reserving.values(), *self._queues.pending(queue).records()]:
            self._inspection.obj = record
            if queue.sync_checks(record, now):
                self._workloads.outbox.changed(record)
                self._evictions.checks_changed(record)
        self._inspection.obj = None
