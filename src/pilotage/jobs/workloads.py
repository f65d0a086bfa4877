"""Workloads as they come from the watch: what did others change?

The engine's own writes come back too, sometimes late. So a version is compared with the version seen before it, not
with what the engine knows: what is equal in both is no news, however old it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotage.jobs import conditions as c
from pilotage.jobs import pods_ready
from pilotage.jobs.conditions import epoch
from pilotage.jobs.lifecycle import Lifecycle
from pilotage.jobs.queueing import Queueing
from pilotage.jobs.record import AFRESH, CheckState, WorkloadPlace, WorkloadRecord, check_state
from pilotage.jobs.status import new_record, pending_reason
from pilotage.jobs.stopping import Stopping
from pilotage.jobs.world import World
from pilotage.model.kueue import Workload, WorkloadStatus
from pilotage.model.meta import TimedCondition

_WAITING = (WorkloadPlace.UNQUEUED, WorkloadPlace.QUEUED, WorkloadPlace.BACKOFF)


class Workloads:
    def __init__(
        self,
        world: World,
        queueing: Queueing,
        lifecycle: Lifecycle,
        stopping: Stopping,
        unassigned: dict[str, WorkloadRecord],
    ) -> None:
        self._world = world
        self._queueing = queueing
        self._lifecycle = lifecycle
        self._stopping = stopping
        self._unassigned = unassigned

    def upsert(self, obj: Workload) -> None:
        record = self._world.records.get(obj.key)
        if record is not None and obj.uid and record.uid != obj.uid:
            self.delete(obj.key)
            record = None
        if record is None:
            self._first_sight(new_record(obj, self._world.pod_rules.shape(obj), self._world.now()))
        else:
            self._changed(record, obj)

    def delete(self, key: str) -> None:
        record = self._world.records.pop(key, None)
        if record is None:
            return
        self._lifecycle.drop(record)
        self._world.pod_rules.forget(record, record.seen.spec.pod_sets)
        self._unassigned.pop(record.uid, None)
        self._world.outbox.forget(record)
        self._leave_local_queue(record)

    def _leave_local_queue(self, record: WorkloadRecord) -> None:
        local = self._world.local_queues.get(record.local_queue_key)
        if local is None:
            return  # finished, as everybody else in a queue that is gone
        local.members.pop(record.uid, None)
        if local.obj is None and not local.members:
            del self._world.local_queues[local.key]

    # --- first sight --------------------------------------------------------------------------------------------------

    def _first_sight(self, record: WorkloadRecord) -> None:
        self._world.records[record.key] = record
        if record.is_finished:
            record.place = WorkloadPlace.FINISHED
            return
        self._world.local_queue(record.local_queue_key).members[record.uid] = record
        self._world.pod_rules.follow(record)
        self._bound_backoff(record)
        if record.has_reservation and record.is_active and _was_deactivated(record):
            record.place = (
                WorkloadPlace.INACTIVE
            )  # activated again, but its pods are not gone yet: its quota is free already
        elif record.has_reservation and record.is_active:
            self._take_over(record)
        elif not record.is_active:
            self._stopping.deactivated(record)
        else:
            queue = self._world.queue_of(record)
            self._queueing.place(record)
            waited_for_victims = pending_reason(record)[0] == c.WAITING_FOR_PREEMPTED
            if (
                waited_for_victims
                and queue is not None
                and record.place is WorkloadPlace.QUEUED
                and not queue.is_strict
            ):
                queue.pending.stick(record)

    def _bound_backoff(self, record: WorkloadRecord) -> None:
        """Its end was written by another clock: if that was ahead of ours, it would last longer than it can."""
        evicted, settings = record.conditions.get(c.EVICTED), self._world.pods_ready
        if record.requeue_at is None or settings is None or evicted is None or evicted.reason != c.PODS_READY_TIMEOUT:
            return
        latest = pods_ready.latest_requeue(record, settings.requeuing_strategy, self._world.now())
        if record.requeue_at > latest:
            record.requeue_at = latest
            self._world.outbox.changed(record)

    def _take_over(self, record: WorkloadRecord) -> None:
        """It had quota before this engine began."""
        record.cluster_queue = record.admission.cluster_queue if record.admission is not None else ""
        queue = self._world.queues.get(record.cluster_queue)
        if queue is None:
            self._unassigned[record.uid] = record
            return
        self._stopping.take_over(record, queue)

    # --- changes ------------------------------------------------------------------------------------------------------

    def _changed(self, record: WorkloadRecord, obj: Workload) -> None:
        old, record.seen = record.seen, obj
        if old.status.reclaimable_pods != obj.status.reclaimable_pods:
            record.written = None
        if record.is_finished:
            return
        self._spec_changed(record, old, obj)
        if record.place is WorkloadPlace.QUOTA_RESERVED and old.metadata.annotations != obj.metadata.annotations:
            self._lifecycle.set_timer(record)
        if old.status is not obj.status and old.status != obj.status:
            self._status_changed(record, old.status, obj.status)

    def _spec_changed(self, record: WorkloadRecord, old: Workload, new: Workload) -> None:
        before, after = old.spec, new.spec
        if before is after or before == after:
            return
        moved = False
        if before.pod_sets != after.pod_sets:
            self._world.pod_rules.forget(record, before.pod_sets)
            self._world.pod_rules.follow(record)
            record.shape, record.resumption = self._world.pod_rules.shape(new), AFRESH
            moved = True
        if before.queue_name != after.queue_name:
            self._rename_queue(record, after.queue_name)
            moved = True
        if before.priority != after.priority:
            moved = True
        if moved and record.place in _WAITING:
            self._queueing.unqueue(record)
        if before.priority != after.priority:
            if record.place is WorkloadPlace.QUOTA_RESERVED:
                self._lifecycle.reprioritise(record, after.priority or 0)
            record.priority = after.priority or 0
        if before.active != after.active:
            self._activity_changed(record, after.active)
        elif moved and record.place in _WAITING:
            self._queueing.place(record)
        elif record.place is WorkloadPlace.QUOTA_RESERVED:
            self._lifecycle.set_timer(record)

    def reshape(self, records: Iterable[WorkloadRecord]) -> None:
        """What the API server adds to the pods of these, or asks of them, may have changed."""
        for record in records:
            shape = self._world.pod_rules.shape(record.seen)
            if shape is record.shape:
                continue
            is_waiting = record.place in _WAITING and record.uid not in self._unassigned
            if is_waiting:
                self._queueing.unqueue(record)
            record.shape, record.resumption = shape, AFRESH
            if is_waiting:
                self._queueing.place(record)
                self._world.outbox.changed(record)

    def _rename_queue(self, record: WorkloadRecord, name: str) -> None:
        self._leave_local_queue(record)
        record.queue_name = name
        self._world.local_queue(record.local_queue_key).members[record.uid] = record

    def _activity_changed(self, record: WorkloadRecord, is_active: bool) -> None:
        record.is_active = is_active
        self._unassigned.pop(record.uid, None)
        if is_active:
            self._stopping.reactivated(record)
        else:
            self._stopping.deactivated(record)

    def _status_changed(self, record: WorkloadRecord, old: WorkloadStatus, new: WorkloadStatus) -> None:
        finished = _condition(new, c.FINISHED)
        if finished is not None and finished.status == "True":
            self._lifecycle.finish(record, finished.reason, finished.message, is_written=True)
            return
        if old.reclaimable_pods != new.reclaimable_pods:
            self._reclaimable_changed(record, new)
        if _condition(old, c.WAITING_FOR_REPLACEMENT_PODS) != _condition(new, c.WAITING_FOR_REPLACEMENT_PODS):
            self._gate_changed(record, _condition(new, c.WAITING_FOR_REPLACEMENT_PODS))
        if old.admission_checks != new.admission_checks:
            self._checks_changed(record, old, new)

    def _reclaimable_changed(self, record: WorkloadRecord, new: WorkloadStatus) -> None:
        is_waiting = record.place in _WAITING
        if is_waiting:
            self._queueing.unqueue(record)
        record.reclaimable = {one.name: one.count for one in new.reclaimable_pods}
        if record.place is WorkloadPlace.QUOTA_RESERVED:
            self._lifecycle.rebook(record)
        elif is_waiting and record.uid not in self._unassigned:
            self._queueing.place(record)

    def _gate_changed(self, record: WorkloadRecord, gate: TimedCondition | None) -> None:
        record.written = None
        if gate is None:
            record.conditions.remove(c.WAITING_FOR_REPLACEMENT_PODS)
        else:
            record.conditions.set(gate.type, gate.status == "True", gate.reason, gate.message, self._world.now())
        if record.place in _WAITING and record.uid not in self._unassigned:
            self._queueing.place(record)

    def _checks_changed(self, record: WorkloadRecord, old: WorkloadStatus, new: WorkloadStatus) -> None:
        before = {check.name: check for check in old.admission_checks}
        found: dict[str, CheckState] = {}
        for check in new.admission_checks:
            mine = record.checks.get(check.name)
            if mine is None or check == before.get(check.name):
                continue
            if check.state == mine.state:
                # Its controller says more about it, or it is our own writing.
                mine.message, mine.updates = check.message, check.pod_set_updates
                record.written = None
                continue
            since = epoch(check.last_transition_time) or self._world.now()
            found[check.name] = check_state(check, since)
        if found:
            self._take_checks(record, found)

    def _take_checks(self, record: WorkloadRecord, found: Mapping[str, CheckState]) -> None:
        is_queued = record.place in (WorkloadPlace.QUEUED, WorkloadPlace.BACKOFF)
        if is_queued:
            self._queueing.unqueue(record)
        record.checks |= found
        self._world.outbox.changed(record)
        if is_queued:
            self._queueing.place(record)
        else:
            self._stopping.checks_changed(record)


def _condition(status: WorkloadStatus, kind: str) -> TimedCondition | None:
    return next((one for one in status.conditions if one.type == kind), None)


def _was_deactivated(record: WorkloadRecord) -> bool:
    evicted = record.conditions.get(c.EVICTED)
    return evicted is not None and evicted.is_true and evicted.reason.startswith(c.DEACTIVATED)
