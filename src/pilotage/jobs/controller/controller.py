"""The controller of workload queueing: one owner of the engine, one inbox, one loop.

    watches -> inbox -> loop: objects and engine take it in
                        timers that are due, then the jobs that something happened to, then scheduling cycles
                        effects -> status writes, events, metrics; jobs to be started or stopped
                        nothing left: wait for news or the next timer

Jobs are started and stopped only when the API server has the status that says so: a successor after a crash
finds what was decided. A standby only keeps the objects; its engine is made from them when its turn comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from pilotage.calls.queueing_writes import WorkloadChange
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock, rfc3339
from pilotage.cycle.inbox import Inbox
from pilotage.jobs.adapters.kinds.registry import JobKinds
from pilotage.jobs.adapters.workload_draft import PriorityClasses
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.controller.engine_keeper import EngineKeeper, StandbyView
from pilotage.jobs.controller.events import QueueingEvents
from pilotage.jobs.controller.flapping import Flapping
from pilotage.jobs.controller.intake import QueueingIntake
from pilotage.jobs.controller.metrics import Gauges, Meters
from pilotage.jobs.controller.objects import Objects, ReconcileKey
from pilotage.jobs.controller.queue_statuses import QueueStatuses
from pilotage.jobs.controller.reconciler import Reconciler
from pilotage.jobs.controller.refusals import why_not_queued
from pilotage.jobs.controller.retention import Retention, removal
from pilotage.jobs.controller.status_writes import StatusWrites
from pilotage.jobs.controller.steps import (
    RecordEvent,
    ReportFinished,
    ReportPodsGone,
    ReportPodsReady,
    ReportReclaimable,
    ReportReplacement,
    Step,
)
from pilotage.jobs.controller.writes import JobWrites
from pilotage.jobs.effects import Deactivate, Effect, Event, StatusChanged
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import LeftOut
from pilotage.jobs.room import Room
from pilotage.jobs.room_on_nodes import NodeRoom
from pilotage.model.kueue import ReclaimablePod, Workload
from pilotage.model.meta import TimedCondition
from pilotage.model.pod import Pod
from pilotage.observe.metrics import Metrics
from pilotage.observe.workload_metrics import WorkloadMetrics

log = logging.getLogger(__name__)

_CYCLES_PER_TURN: Final = 16
_SUBJECTS_PER_TURN: Final = 64
_SHORTEST_REST_SECONDS: Final = 0.001


class QueueingController:
    """Runs while it leads; `follow` keeps it ready until then. Watch events come in through `intake`."""

    def __init__(
        self,
        make_engine: Callable[[Room | None], JobQueueing],
        calls: Calls,
        clock: Clock,
        configuration: QueueingConfiguration,
        metrics: WorkloadMetrics,
        faults: Metrics | None = None,
        kinds: JobKinds | None = None,
        room: NodeRoom | None = None,
    ) -> None:
        """`faults`: where skipped objects and failed rounds are kept; `kinds`: the kinds of jobs that are watched;
        `room`: what is known of nodes."""
        faults = faults or Metrics()
        self._room = room
        self._make_engine = partial(make_engine, room)
        self._calls = calls
        self._clock = clock
        self._skipped = faults.skipped
        self.inbox = Inbox(faults.task_errors)
        if room is not None:
            room.on_change = self.inbox.wake
        may_default = configuration.feature_gates.get("WorkloadPriorityClassDefaulting", True)
        self._objects = Objects(PriorityClasses(may_default=may_default), kinds)
        # Only one engine at a time keeps room for workloads.
        self._standby_view = StandbyView(partial(make_engine, None), self._objects, clock)
        self._reconciler = Reconciler(self._objects, configuration, self._newest)
        self._left_out = LeftOut(self._skipped)
        self.intake = QueueingIntake(self._objects, self.inbox, self._reconciler, self._left_out)
        self.intake.on_workload = self._note_workload
        self._events = QueueingEvents(EventRecorder(calls, clock))
        self._keeper = EngineKeeper(self._make_engine, self._objects, self.intake, self._events, faults)
        self._writes = JobWrites(calls, self._events, clock, self._mark, self.inbox.wake)
        self.intake.on_gone = self._forget
        self.intake.on_left_alone = self._warn_of
        self._statuses: StatusWrites | None = None
        self._flapping = Flapping(clock)
        self._retention = Retention(configuration.object_retention_policies.workloads, clock)
        self._meters = Meters(metrics, lambda key: key in self._objects.of("LocalQueue"))
        self._gauges = Gauges(metrics, lambda: self.engine, configuration)

    @property
    def engine(self) -> JobQueueing | None:
        """None until it leads."""
        return self.intake.engine

    def view(self) -> JobQueueing:
        """To be read, never to be changed: the engine itself, or what a standby makes of the objects."""
        if self.engine is not None:
            return self.engine
        self.inbox.drain()
        return self._standby_view.engine()

    def objects_of(self, kind: str) -> Mapping[str, Any]:
        """What is known of a kind, by key: to be read, never to be changed."""
        return self._objects.of(kind)

    async def follow(self) -> None:
        """Keep the objects up to date without deciding anything, until cancelled: what a standby does."""
        self._meters.role = self._gauges.role = "follower"
        while True:
            self.inbox.drain()
            await self.inbox.arrival()

    async def run(self, role: str = "standalone") -> None:
        """Until cancelled. Call it when the first list of every watched kind was put in."""
        self._meters.role = self._gauges.role = role
        self.inbox.drain()
        self._statuses = statuses = StatusWrites(self._make_engine(), self._calls, self._clock, self)
        self.intake.is_spoiled = True  # there is no engine that knows anything
        queues = QueueStatuses(lambda: statuses.engine, self._calls, self._clock)
        try:
            await self._lead(statuses, queues)
        finally:
            statuses.end()

    async def _lead(self, statuses: StatusWrites, queues: QueueStatuses) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    if self.intake.is_spoiled:
                        self._keeper.renew(statuses)
                    has_more = self._turn(statuses.engine, statuses)
                except Exception as error:
                    await self._clock.sleep(self._keeper.failed(error))
                    continue
                self._keeper.succeeded()
                if has_more:
                    # Give way to the network and the watches.
                    await self._clock.sleep(0)
                else:
                    queues.write_changed()
                    await self._rest(tasks, statuses, queues)

    def _turn(self, engine: JobQueueing, statuses: StatusWrites) -> bool:
        """Take in what has arrived and do a bounded part of what follows; False if nothing is left to do."""
        self.inbox.drain()
        engine.fire_timers()
        if self._room is not None:
            self._take_changes_of_nodes(self._room, engine)
        statuses.try_again()
        self.intake.dirty.update(dict.fromkeys(self._writes.retries.take_due()))
        self._reconcile(engine, statuses)
        self._clear_away(engine)
        has_more = False
        for _ in range(_CYCLES_PER_TURN):
            has_more = engine.cycle()
            if not has_more:
                break
        self._carry_out(engine.take_effects(), statuses)
        return has_more or bool(self.intake.dirty)

    def _take_changes_of_nodes(self, room: NodeRoom, engine: JobQueueing) -> None:
        has_room, troubled = room.take_changes()
        for key in troubled:
            engine.pods_troubled(key)
        if has_room:
            engine.nodes_changed()

    async def _rest(self, tasks: asyncio.TaskGroup, statuses: StatusWrites, queues: QueueStatuses) -> None:
        """Sleep until there is news or something is due."""
        timers, now = statuses.engine.next_due(), self._clock.monotonic()
        kept = self._retention.next_due()
        due = [statuses.retries.next_due(), self._writes.retries.next_due(), queues.next_due()]
        delays = [time - now for time in due if time is not None]
        delays += [time - self._clock.time() for time in (timers, kept) if time is not None]
        sleeper = tasks.create_task(self._wake_after(min(delays)), name="queueing timer") if delays else None
        await self.inbox.arrival()
        if sleeper is not None:
            sleeper.cancel()

    async def _wake_after(self, seconds: float) -> None:
        await self._clock.sleep(max(seconds, _SHORTEST_REST_SECONDS))
        self.inbox.wake()

    # --- jobs --------------------------------------------------------------------------------------------------

    def _reconcile(self, engine: JobQueueing, statuses: StatusWrites) -> None:
        dirty = self.intake.dirty
        for subject in list(dirty)[:_SUBJECTS_PER_TURN]:
            del dirty[subject]
            keys = self._reconciler.workload_keys(subject)
            if any(statuses.is_pending(key) or ("Workload", key) in self._left_out for key in keys):
                continue  # it is looked at again when the status is written, or the workload has changed
            try:
                for step in self._reconciler.steps(subject):
                    self._take_step(step, subject, engine, statuses)
            except Exception as error:
                self._skipped.skip(subject.kind, subject.key, "reconcile", error)
                self._writes.retries.failed(subject)
                if engine.culprit is not None:
                    raise
            else:
                self._skipped.understood(subject.kind, subject.key)

    def _clear_away(self, engine: JobQueueing) -> None:
        """Delete what need not be kept any longer."""
        for key in self._retention.take_due():
            workload = engine.workload(key)
            if workload is not None and self._retention.is_over(workload):
                for step in removal(workload, self._objects):
                    self._writes.carry_out(step, self._objects.subject_of(workload) or ReconcileKey("Workload", key))

    def _take_step(self, step: Step, subject: ReconcileKey, engine: JobQueueing, statuses: StatusWrites) -> None:
        match step:
            case ReportPodsReady():
                engine.pods_ready(step.key, step.is_ready)
            case ReportPodsGone():
                self._let_go(step.key, subject, engine)
            case ReportFinished():
                engine.finished(step.key, step.reason, step.message)
                if step.event is not None:
                    self._events.record(step.event)
            case ReportReclaimable():
                pods = tuple(ReclaimablePod(name, count) for name, count in step.counts.items())
                statuses.set_reclaimable(step.key, pods)
            case ReportReplacement():
                statuses.set_condition(step.key, self._replacement(step))
            case RecordEvent():
                self._events.record(step)
            case _:
                self._writes.carry_out(step, subject)

    def _let_go(self, key: str, subject: ReconcileKey, engine: JobQueueing) -> None:
        """The eviction is complete, unless the workload is held for a while because it comes and goes too quickly."""
        workload = engine.workload(key)
        seconds = 0.0 if workload is None else self._flapping.seconds_to_hold(workload)
        if not seconds or workload is None:
            engine.pods_gone(key)
            return
        text = (
            f"Preempted {self._flapping.length(key)} times in quick succession: its quota is kept for {seconds:.0f}s. "
            "Look at the priorities and at the preemption policies of the queues of its cohort"
        )
        self._events.record(RecordEvent(workload, "PreemptedRepeatedly", text, "Warning"))
        self._writes.retries.later(subject, seconds)

    def _replacement(self, step: ReportReplacement) -> TimedCondition:
        message = "Pods that were deleted have to be created again" if step.is_waiting else "All pods are there"
        return TimedCondition(
            type="WaitingForReplacementPods",
            status="True" if step.is_waiting else "False",
            reason=step.reason,
            message=message,
            last_transition_time=rfc3339(self._clock.time()),
        )

    # --- effects -----------------------------------------------------------------------------------------------

    def _carry_out(self, effects: Iterable[Effect], statuses: StatusWrites) -> None:
        changed: list[Workload] = []
        for effect in effects:
            match effect:
                case StatusChanged():
                    try:
                        changed.append(effect.workload)
                    except Exception as error:
                        self._skipped.skip("Workload", effect.key, "status", error)
                case Deactivate():
                    namespace, _, name = effect.key.rpartition("/")
                    patch = {"metadata": {"uid": effect.uid}, "spec": {"active": False}}
                    self._calls.submit(WorkloadChange(namespace, name, effect.uid, patch))
                case Event():
                    self._events.record_of_engine(effect)
                case _:
                    self._meters.record(effect)
        statuses.decided(changed)

    # --- what becomes of statuses ------------------------------------------------------------------------------

    def on_written(self, key: str) -> None:
        workload = self._objects.workloads.get(key)
        subject = self._objects.subject_of(workload) if workload is not None else None
        if subject is not None:
            self._mark(subject)

    def on_failed(self, key: str, error: Exception) -> None:
        """A status could not even be put together, or what follows from its writing failed."""
        self._keeper.write_failed(key, error)
        self.inbox.wake()

    def on_read(self, workload: Workload) -> None:
        self.intake.read(workload)

    def wake(self) -> None:
        self.inbox.wake()

    # --- news --------------------------------------------------------------------------------------------------

    def _mark(self, subject: ReconcileKey) -> None:
        self.intake.dirty[subject] = None
        self.inbox.wake()

    def _note_workload(self, workload: Workload, is_gone: bool) -> None:
        if self._statuses is None:
            return
        if is_gone:
            self._statuses.gone(workload.key)
            self._retention.forget(workload.key)
            self._flapping.forget(workload.key)
        else:
            self._statuses.seen(workload)
            self._retention.see(workload)
        self._writes.seen(workload.key)

    def _forget(self, kind: str, obj: Any) -> None:
        self._writes.gone(obj.uid)
        self._events.forget(obj.uid)
        if kind == "ClusterQueue":
            self._meters.forget(cluster_queue=obj.name)
            self._meters.forget(preempting_cluster_queue=obj.name)
        elif kind == "LocalQueue":
            self._meters.forget(name=obj.name, namespace=obj.namespace)

    def _warn_of(self, pod: Pod) -> None:
        if self._objects.kinds.owner(pod.controller) is None and (why := why_not_queued(pod)):
            self._events.warn(pod, "NotQueued", why)

    def _newest(self, key: str) -> Workload | None:
        return self.engine.workload(key) if self.engine is not None else None
