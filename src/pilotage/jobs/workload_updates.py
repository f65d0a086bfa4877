"""Workloads as they come from the watch: what did others change?

The engine's own writes come back too, sometimes late. So a version is compared with the version seen before it, not
with what the engine knows: what is equal in both is not new, however old it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotage.jobs import conditions as c
from pilotage.jobs import pods_ready
from pilotage.jobs.conditions import epoch
from pilotage.jobs.evictions import Evictions
from pilotage.jobs.record import CheckState, WorkloadPlace, WorkloadRecord, check_state
from pilotage.jobs.workloads import Workloads
from pilotage.model.kueue import Workload, WorkloadStatus
from pilotage.model.meta import TimedCondition


class WorkloadUpdates:
    def __init__(self, workloads: Workloads, evictions: Evictions) -> None:
        self._workloads = workloads
        self._queues = workloads.queues
        self._timers = workloads.timers
        self._outbox = workloads.outbox
        self._evictions = evictions

    def upsert(self, obj: Workload) -> None:
        record = self._workloads.records.get(obj.key)
        if record is not None and obj.uid and record.uid != obj.uid:
            self._workloads.remove(obj.key)
            record = None
        if record is None:
            self._first_sight(self._workloads.add(obj))
        else:
            self._changed(record, obj)

    # --- first sight --------------------------------------------------------------------------------------------------

    def _first_sight(self, record: WorkloadRecord) -> None:
        if record.place is WorkloadPlace.FINISHED:
            return
        self._bound_backoff(record)
        if record.has_reservation and record.is_active and _was_deactivated(record):
            # Activated again, but its pods are not gone yet: its quota is free already.
            record.rest(WorkloadPlace.INACTIVE)
        elif record.has_reservation and record.is_active:
            self._take_over(record)
        elif not record.is_active:
            self._evictions.deactivated(record)
        else:
            queue = self._queues.queue_of(record)
            self._queues.place(record)
            waited_for_victims = record.pending_reason[0] == c.WAITING_FOR_PREEMPTED
            is_queued = record.place is WorkloadPlace.QUEUED
            if waited_for_victims and queue is not None and is_queued and not queue.is_strict:
                self._queues.pending(queue).stick(record)

    def _bound_backoff(self, record: WorkloadRecord) -> None:
        """Its end was written by another clock: if that was ahead of ours, it would last longer than it can."""
        evicted = record.conditions.get(c.EVICTED)
        if evicted is None or evicted.reason not in (c.PODS_READY_TIMEOUT, c.PODS_UNSCHEDULABLE):
            return
        if record.bound_backoff(pods_ready.latest_requeue(record, self._workloads.requeuing, self._timers.now())):
            self._outbox.changed(record)

    def _take_over(self, record: WorkloadRecord) -> None:
        """It had quota before this engine began."""
        record.assign_queue(record.admission.cluster_queue if record.admission is not None else "")
        queue = self._workloads.tree.queues.get(record.cluster_queue)
        if queue is None:
            self._workloads.set_unassigned(record)
            if record.admission is None:
                self._evictions.admission_missing(record)
        else:
            self._evictions.take_over(record, queue)

    # --- changes ------------------------------------------------------------------------------------------------------

    def _changed(self, record: WorkloadRecord, obj: Workload) -> None:
        old = record.see(obj)
        if record.is_finished:
            return
        self._spec_changed(record, old, obj)
        if record.place is WorkloadPlace.QUOTA_RESERVED and old.metadata.annotations != obj.metadata.annotations:
            self._workloads.set_timer(record)
        if old.status is not obj.status and old.status != obj.status:
            self._status_changed(record, old.status, obj.status)

    def _spec_changed(self, record: WorkloadRecord, old: Workload, new: Workload) -> None:
        before, after = old.spec, new.spec
        if before is after or before == after:
            return
        moved = False
        if before.pod_sets != after.pod_sets:
            self._workloads.pod_rules.forget(record, before.pod_sets)
            self._workloads.pod_rules.follow(record)
            record.reshape(self._workloads.pod_rules.shape(new))
            moved = True
        if before.queue_name != after.queue_name:
            self._rename_queue(record, after.queue_name)
            moved = True
        if before.priority != after.priority:
            moved = True
        if moved and record.is_waiting:
            self._queues.unqueue(record)
        if before.priority != after.priority:
            self._workloads.change_priority(record, after.priority or 0)
        if before.active != after.active:
            self._activity_changed(record, after.active)
        elif moved and record.is_waiting:
            self._queues.place(record)
        elif record.place is WorkloadPlace.QUOTA_RESERVED:
            self._workloads.set_timer(record)

    def reshape(self, records: Iterable[WorkloadRecord]) -> None:
        """What the API server adds to the pods of these, or asks of them, may have changed."""
        for record in records:
            shape = self._workloads.pod_rules.shape(record.seen)
            if shape is record.shape:
                continue
            is_waiting = record.is_waiting and not self._workloads.is_unassigned(record)
            if is_waiting:
                self._queues.unqueue(record)
            record.reshape(shape)
            if is_waiting:
                self._queues.place(record)
                self._outbox.changed(record)

    def _rename_queue(self, record: WorkloadRecord, name: str) -> None:
        self._queues.leave_local_queue(record)
        record.rename_queue(name)
        self._queues.join_local_queue(record)

    def _activity_changed(self, record: WorkloadRecord, is_active: bool) -> None:
        record.set_active(is_active)
        self._workloads.forget_unassigned(record)
        if is_active:
            self._evictions.reactivated(record)
        else:
            self._evictions.deactivated(record)

    def _status_changed(self, record: WorkloadRecord, old: WorkloadStatus, new: WorkloadStatus) -> None:
        finished = _condition(new, c.FINISHED)
        if finished is not None and finished.status == "True":
            self._workloads.finish(record, finished.reason, finished.message, is_written=True)
            return
        if old.reclaimable_pods != new.reclaimable_pods:
            self._reclaimable_changed(record, new)
        if _condition(old, c.WAITING_FOR_REPLACEMENT_PODS) != _condition(new, c.WAITING_FOR_REPLACEMENT_PODS):
            self._gate_changed(record, _condition(new, c.WAITING_FOR_REPLACEMENT_PODS))
        if old.admission_checks != new.admission_checks:
            self._checks_changed(record, old, new)
        if old.admission is not None and new.admission is None:
            self._evictions.admission_withdrawn(record, old)

    def _reclaimable_changed(self, record: WorkloadRecord, new: WorkloadStatus) -> None:
        is_waiting = record.is_waiting
        if is_waiting:
            self._queues.unqueue(record)
        record.set_reclaimable({one.name: one.count for one in new.reclaimable_pods})
        if record.place is WorkloadPlace.QUOTA_RESERVED:
            self._workloads.change_usage(record)
        elif is_waiting and not self._workloads.is_unassigned(record):
            self._queues.place(record)

    def _gate_changed(self, record: WorkloadRecord, gate: TimedCondition | None) -> None:
        if gate is None:
            record.remove_condition(c.WAITING_FOR_REPLACEMENT_PODS)
        else:
            record.set_condition(gate.type, gate.status == "True", gate.reason, gate.message, self._timers.now())
        if record.is_waiting and not self._workloads.is_unassigned(record):
            self._queues.place(record)

    def _checks_changed(self, record: WorkloadRecord, old: WorkloadStatus, new: WorkloadStatus) -> None:
        before = {check.name: check for check in old.admission_checks}
        found: dict[str, CheckState] = {}
        for check in new.admission_checks:
            mine = record.checks.get(check.name)
            if mine is None or check == before.get(check.name):
                continue
            if check.state == mine.state:
                # Its controller says more about it, or it is our own writing.
                record.amend_check(check.name, check.message, check.pod_set_updates)
                continue
            since = epoch(check.last_transition_time) or self._timers.now()
            found[check.name] = check_state(check, since)
        if found:
            self._take_checks(record, found)

    def _take_checks(self, record: WorkloadRecord, found: Mapping[str, CheckState]) -> None:
        is_queued = record.is_queued
        if is_queued:
            self._queues.unqueue(record)
        record.take_checks(found)
        self._outbox.changed(record)
        if is_queued:
            self._queues.place(record)
        else:
            self._evictions.checks_changed(record)


def _condition(status: WorkloadStatus, kind: str) -> TimedCondition | None:
    return next((one for one in status.conditions if one.type == kind), None)


def _was_deactivated(record: WorkloadRecord) -> bool:
    evicted = record.conditions.get(c.EVICTED)
    return evicted is not None and evicted.is_true and evicted.reason.startswith(c.DEACTIVATED)
