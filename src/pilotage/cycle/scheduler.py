"""The scheduler loop: one owner of cluster and queue, one pod at a time.

    inbox -> cluster, queue        between cycles
    queue.pop -> place -> assume -> Reserve -> Permit -> binding task
                   |
                   +-> failure: reason to the pod, ticket back to the queue

A cycle is synchronous: nothing can change under it. Binding runs beside it and reports through the inbox. What a cycle
writes is sent in the background, unless a gate (SchedulerAsyncAPICalls, SchedulerAsyncPreemption) is off: then the loop
runs one cycle at a time and waits for its calls, or its victims, before the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pilotage.api.budget import UNLIMITED, BudgetExceeded
from pilotage.api.conditions import BUDGET_EXCEEDED
from pilotage.api.events import ClusterEvent
from pilotage.api.state import CycleState
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.recorder import EventRecorder
from pilotage.clock import thread_cpu_seconds
from pilotage.cluster.state import AssumeError, Cluster
from pilotage.cycle.attempt_log import log as attempt_log
from pilotage.cycle.attempt_log import log_failed, log_placed
from pilotage.cycle.attempt_meter import AttemptMeter
from pilotage.cycle.binding import BindingCycle, Decision
from pilotage.cycle.cluster_writes import ClusterWrites, DelayedGatedStatus
from pilotage.cycle.eviction import Evictor, EvictorParts
from pilotage.cycle.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, FailureHandler
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.intake import Intake
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, Unplaced, place
from pilotage.cycle.scheduler_parts import SchedulerParts
from pilotage.cycle.slow_plugins import SlowPlugins
from pilotage.cycle.stale_view import StaleView
from pilotage.cycle.unserved_pods import UnservedPods
from pilotage.framework.diagnosis import Rejected, single_node_diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.unserved_fields import used_fields
from pilotage.framework.waiting_pods import WaitingPod, WaitingPods
from pilotage.model import Pod
from pilotage.observe.verbosity import ATTEMPTS
from pilotage.queue.entry import SubQueue, Ticket
from pilotage.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)

_CYCLES_PER_TURN = 16
_BACKOFF_TICK_SECONDS = 1.0
_TICKS_PER_SWEEP = 30
_TICKS_PER_MOMENT = 3
"""A pod that waits for its claim to be made among thousands of others is not held back."""
LONGEST_END_SECONDS = 15.0
"""What an orderly end waits for bindings and calls; Kubernetes gives a pod 30 s before it kills."""
_LOOK_AGAIN_SECONDS = 0.02


class _Ended(Exception):
    """Everything that was to be done is done."""


class Scheduler:
    """Schedules pods for ever. Watch events come in through `intake`."""

    def __init__(self, parts: SchedulerParts) -> None:
        self._parts = parts
        self._cluster = parts.cluster
        self._queue = parts.queue
        self.metrics = parts.metrics
        self._budgets = parts.budgets
        self.slow_plugins = SlowPlugins(parts.clock, parts.metrics, parts.budgets.budget)
        self._attempts = AttemptMeter(parts.metrics, parts.clock, parts.queue)
        self.inbox = Inbox(parts.metrics.task_errors, parts.clock)
        self._is_ending = False
        self.after_search: list[Callable[[Pod], None]] = []
        """Called in every cycle once a node was found or not, before anything follows from it."""
        self.on_cycle: list[Callable[[Pod | None], None]] = []
        """Called with the pod when a cycle begins, and with None when there is nothing more to do for now."""
        calls = parts.dispatcher.queue
        self.intake = Intake(
            parts.cluster,
            parts.queue,
            self.inbox,
            parts.engines.keys(),
            parts.waiting_pods,
            parts.clock,
            parts.metrics.event_handling_duration_seconds,
            calls,
            parts.metrics.skipped,
        )
        recorder = EventRecorder(parts.dispatcher, parts.clock)
        self.recorder = recorder
        self._unserved = UnservedPods(recorder, parts.metrics)
        self.writes = ClusterWrites(
            parts.cluster, parts.calls_in_place or parts.dispatcher, calls, self.inbox, parts.clock
        )
        self._failures = FailureHandler(
            parts.cluster, parts.queue, self.writes, recorder, parts.clock, self.intake.on_nomination_removed
        )
        self._failed: list[tuple[Ticket, Failure]] = []
        """Tickets of this cycle that are still to be given back."""
        self.evictor = Evictor(
            EvictorParts(
                parts.dispatcher,
                self.writes,
                recorder,
                self.inbox,
                parts.waiting_pods,
                parts.cluster,
                parts.clock,
                self.intake,
            )
        )
        self.view_of_pods = StaleView(parts.clock, self.activate)
        self.gated = DelayedGatedStatus(parts.queue, self.writes)
        self._binding = BindingCycle(
            parts.cluster,
            parts.queue,
            self.inbox,
            self._failures,
            recorder,
            self._attempts,
            parts.metrics.permit_wait_duration_seconds,
            parts.waiting_pods,
            self.evictor,
            parts.clock,
            self.writes if parts.announces_places else None,
            parts.plugin_errors,
            parts.metrics.skipped,
        )

    @property
    def queue(self) -> SchedulingQueue:
        return self._queue

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def waiting_pods(self) -> WaitingPods:
        return self._parts.waiting_pods

    @property
    def dispatcher(self) -> Dispatcher:
        """Where everything that is written goes out, also what is written beside the scheduler."""
        return self._parts.dispatcher

    async def run(self) -> None:
        """Until `end` is called or it is cancelled. Call it when the first list of every watched kind was put in.

        Whoever is cancelled may write nothing any more (its lease is lost): what that costs is logged.
        """
        try:
            await self._run()
        except asyncio.CancelledError:
            self.recorder.catch_up(is_busy=False)
            self._parts.dispatcher.abandon("the scheduler was stopped at once")
            raise

    async def _run(self) -> None:
        with self.slow_plugins.watching(), self._budgets.excusing_garbage_collections():
            try:
                async with asyncio.TaskGroup() as tasks:
                    self.start(tasks)
                    await self._loop(tasks)
                    deadline = self._parts.clock.monotonic() + LONGEST_END_SECONDS
                    await self._wind_down(deadline)
                    await self._end_plugins()
                    await self._wind_down(deadline)
                    await self._parts.dispatcher.stop(grace_seconds=0.0)
                    # Ends what is left in the group: timers, the dispatcher, pods that wait for permission.
                    raise _Ended
            except* _Ended:
                pass

    def end(self) -> None:
        """Begin nothing new; `run` returns when what was decided is bound and what is to be told is written."""
        self._is_ending = True
        self.inbox.wake()

    async def follow(self) -> None:
        """Keep cluster and queue up to date without scheduling, until cancelled: what a standby does."""
        while True:
            self.drain_inbox()
            if self.inbox.is_empty:
                await self.inbox.arrival()
            else:
                await self._parts.clock.sleep(0)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start everything but the loop: for those who run the cycles themselves, one by one."""
        tasks.create_task(self._parts.dispatcher.run(), name="api call dispatcher")
        tasks.create_task(self._keep_time(), name="backoff and sweep")
        if self._parts.plugin_tasks is not None:
            self._parts.plugin_tasks.start(tasks)

    async def _end_plugins(self) -> None:
        """Their tasks, then themselves; what they write at last is still sent."""
        if self._parts.plugin_tasks is not None:
            plugins = [plugin for engine in self._parts.engines.values() for plugin in engine.profile.plugins]
            await self._parts.plugin_tasks.end(plugins)

    async def _wind_down(self, deadline: float) -> None:
        clock = self._parts.clock
        while self._is_at_work() and clock.monotonic() < deadline:
            await clock.sleep(_LOOK_AGAIN_SECONDS)
            self.drain_inbox()

    def _is_at_work(self) -> bool:
        """Is a pod being bound, or a call to be sent? Pods that wait for permission may wait for ever."""
        in_flight = self._queue.size(SubQueue.IN_FLIGHT) - sum(1 for _ in self._parts.waiting_pods)
        return in_flight > 0 or not self._parts.dispatcher.is_idle

    async def _loop(self, tasks: asyncio.TaskGroup) -> None:
        waits = self._parts.waits_for_victims or self._parts.calls_in_place is not None
        while not self._is_ending:
            self.drain_inbox()
            has_worked = await self._cycle_in_place(tasks) if waits else self._cycles(tasks)
            for tell in self.on_cycle:
                tell(None)
            self.recorder.catch_up(is_busy=has_worked)
            if has_worked or not self.inbox.is_empty:
                # Give way to the network, to the bindings, and to the watches that fill the inbox.
                await self._parts.clock.sleep(0)
            else:
                await self.inbox.arrival()
        self.recorder.catch_up(is_busy=False)

    def activate(self, uids: Iterable[str]) -> None:
        """Try these pods next, whatever they wait for; may be called at any time from the same event loop."""
        self._queue.activate(uids)
        self.inbox.wake()

    def requeue_on(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Something happened that no watch tells; may be called at any time from the same event loop."""

        def tell() -> None:
            self._queue.on_event(event, old, new)

        self.inbox.put(tell)

    def back_off(self, uids: Iterable[str]) -> None:
        """Try these pods again when their backoff is over: what was to follow from their last attempt failed."""
        self._queue.back_off(uids)
        self.inbox.wake()

    def note_pods_watch(self, is_up: bool) -> None:
        """The watch of pods was interrupted, or is back; takes effect after everything that it has told so far."""
        self.inbox.put(self.view_of_pods.resumed if is_up else self.view_of_pods.interrupted)

    def drain_inbox(self) -> None:
        """Let what has arrived take effect."""
        if self.inbox.is_empty:
            # Most turns bring none, and looking at the CPU's clock takes longer than finding that out.
            self.inbox.drain()
            return
        started = thread_cpu_seconds()
        self.slow_plugins.begin()
        self.inbox.drain()
        self._cluster.settle()
        self.slow_plugins.end()
        self.metrics.intake_cpu_seconds_total.add(amount=thread_cpu_seconds() - started)

    async def _keep_time(self) -> None:
        ticks = 0
        while True:
            await self._parts.clock.sleep(_BACKOFF_TICK_SECONDS)
            ticks += 1
            contained = self.metrics.task_errors.contained
            with contained("events"):
                self.recorder.tick()
            with contained("evictions"):
                self.evictor.tick()
            with contained("view of pods"):
                self.view_of_pods.tick()
            if ticks % _TICKS_PER_MOMENT == 0:
                with contained("gated pods"):
                    self.gated.tick()
            with contained("backoff"):
                if self._queue.release_backoff():
                    self.inbox.wake()
            if ticks % _TICKS_PER_SWEEP == 0:
                with contained("sweep of leftovers"):
                    if self._queue.flush_unschedulable():
                        self.inbox.wake()

    def _cycles(self, tasks: asyncio.TaskGroup) -> bool:
        """A few cycles in a row; False if there was nothing to do."""
        if not self._queue.has_next:
            return False
        started = thread_cpu_seconds()
        worked = False
        for _ in range(_CYCLES_PER_TURN):
            if self.run_cycle(tasks) is None:
                break
            worked = True
        self.slow_plugins.end()
        self.metrics.cycle_cpu_seconds_total.add(amount=thread_cpu_seconds() - started)
        return worked

    def run_cycle(self, tasks: asyncio.TaskGroup) -> Ticket | None:
        """Schedule the next pod, and let its binding begin; None if there is nothing to schedule."""
        ticket = self._begin_cycle(tasks)
        self._end_cycle()
        return ticket

    async def _cycle_in_place(self, tasks: asyncio.TaskGroup) -> bool:
        """One cycle and everything that follows from it; False if there was nothing to do."""
        failed_before = self.evictor.failures
        if self._begin_cycle(tasks) is None:
            return False
        while self._parts.waits_for_victims and self.evictor.under_way:
            await self.inbox.arrival()
            self.drain_inbox()
        if self.evictor.failures > failed_before:
            # No node is nominated whose victims stay.
            self._failed = [(ticket, replace(failure, nomination="")) for ticket, failure in self._failed]
        self._end_cycle()
        if self._parts.calls_in_place is not None:
            await self._parts.calls_in_place.settled()
        return True

    def _begin_cycle(self, tasks: asyncio.TaskGroup) -> Ticket | None:
        ticket = self._queue.pop()
        if ticket is None:
            return None
        ticket.started = self.slow_plugins.begin()
        for tell in self.on_cycle:
            tell(ticket.pod)
        decision = self.decide(ticket)
        if decision is not None:
            tasks.create_task(self._binding.run(decision), name="binding")
        return ticket

    def _end_cycle(self) -> None:
        failed, self._failed = self._failed, []
        for ticket, failure in failed:
            try:
                self._failures.handle(ticket, failure)
            except Exception as error:
                self._drop(ticket, error)

    def _drop(self, ticket: Ticket, error: Exception) -> None:
        """Not even its failure can be handled: it is out of the queue until its pod changes."""
        self.metrics.skipped.skip("Pod", ticket.pod.key, "intake", error)
        with suppress(Exception):
            self._queue.done(ticket)

    def decide(self, ticket: Ticket) -> Decision | None:
        """One scheduling cycle: a decision to be bound, or None if the ticket is done or goes back after the cycle."""
        pod = ticket.pod
        if self._is_pointless(pod):
            self._queue.done(ticket)
            return None
        known = self._budgets.known_overrun(pod)
        if known is not None:
            self._fail(ticket, Failure(BUDGET_EXCEEDED, known.message()))
            return None
        engine = self._parts.engines[pod.spec.scheduler_name]
        if ticket.entry.attempts == 1 and used_fields(pod.spec):
            self._unserved.note(pod, engine.profile)
        state = CycleState(self._budgets.begin(pod))
        self.slow_plugins.may_interrupt = True
        try:
            decision = self._parts.meters[pod.spec.scheduler_name].run(self._placed, ticket, engine, state)
        except BudgetExceeded as error:
            self.slow_plugins.may_interrupt = False
            overrun = self._budgets.exceeded(pod, error)
            log.warning("pod is put aside: pod=%s reason=%s", pod.key, overrun.message())
            self._fail(ticket, Failure(BUDGET_EXCEEDED, overrun.message()))
        except PluginError as error:
            self._note_error(pod, error)
            self._fail(ticket, Failure(SCHEDULER_ERROR, str(error)))
        except NoNodes as error:
            self._fail(ticket, Failure(UNSCHEDULABLE, str(error)))
        except AssumeError as error:
            self._fail(ticket, Failure(SCHEDULER_ERROR, str(error)))
        except Exception as error:
            found = self.metrics.skipped.skip("Pod", pod.key, "cycle", error)
            self._fail(ticket, Failure(SCHEDULER_ERROR, found.error))
        else:
            # Errors of one attempt need not be those of the next.
            self.metrics.skipped.understood("Pod", pod.key)
            return decision
        finally:
            self.slow_plugins.may_interrupt = False
        return None

    def _note_error(self, pod: Pod, error: PluginError) -> None:
        self._parts.plugin_errors.note(error.plugin, error.point, error.__cause__ or error, pod.key)

    def _is_pointless(self, pod: Pod) -> bool:
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self.recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self._cluster.is_assumed(pod.uid)

    def _placed(self, ticket: Ticket, engine: ProfileEngine, state: CycleState) -> Decision | None:
        pod = ticket.pod
        placement = place(engine, state, pod)
        meter = self._parts.meters[pod.spec.scheduler_name]
        meter.note_evaluated(state, isinstance(placement, Placed))
        self.metrics.scheduling_algorithm_duration_seconds.observe(self._parts.clock.monotonic() - ticket.started)
        for tell in self.after_search:
            tell(pod)
        if isinstance(placement, Unplaced):
            if placement.error is not None:
                self._note_error(pod, placement.error)
            if not placement.nomination.node_name:
                state.budget.check()  # a plugin that never looks at the clock has cost as much as one that does
            # What forbids a preemption may change although the nodes stay as full as they are.
            placement.diagnosis.rejectors |= placement.nomination.rejectors
            message = placement.diagnosis.message()
            self._fail(ticket, Failure(UNSCHEDULABLE, message, placement.diagnosis, placement.nomination.node_name))
            return None
        assumed = pod.with_node(placement.node_name)
        self._cluster.assume(assumed)
        self._clear_nomination(pod, placement.node_name)
        try:
            answer = self._reserve_and_permit(engine, state, assumed)
        except (Exception, BudgetExceeded):
            self._give_up_place(engine, state, assumed)
            raise
        finally:
            state.budget = UNLIMITED  # what is awaited from here on is no part of the cycle
        if isinstance(answer, Rejected):
            self._give_up_place(engine, state, assumed)
            diagnosis = single_node_diagnosis(answer.plugin, answer.rejection, assumed.node_name)
            self._fail(ticket, Failure(UNSCHEDULABLE, diagnosis.message(), diagnosis))
            return None
        if attempt_log.isEnabledFor(ATTEMPTS):
            log_placed(ticket, placement, answer, self._parts.clock.monotonic())
        return Decision(ticket, assumed, state, engine.runner, meter, answer)

    def _clear_nomination(self, pod: Pod, node_name: str) -> None:
        """The pod has its node; the place that may have been kept for it elsewhere is free for others."""
        nominated = self._cluster.nominations.node_of(pod.uid)
        if nominated:
            self._cluster.nominations.remove(pod.uid)
            if nominated != node_name:
                self.intake.on_nomination_removed(pod, nominated)

    def _reserve_and_permit(self, engine: ProfileEngine, state: CycleState, pod: Pod) -> Rejected | WaitingPod | None:
        rejected = engine.runner.reserve(state, pod, pod.node_name)
        if rejected is not None:
            return rejected
        permitted = engine.runner.permit(state, pod, pod.node_name)
        if isinstance(permitted, Rejected):
            return permitted
        if not permitted:
            return None
        waiting = WaitingPod(pod, permitted, self._parts.clock.monotonic())
        self._parts.waiting_pods.add(waiting)
        return waiting

    def _give_up_place(self, engine: ProfileEngine, state: CycleState, pod: Pod) -> None:
        for error in engine.runner.unreserve(state, pod, pod.node_name):
            self._note_error(pod, error)
        self._cluster.forget(pod.uid)

    def _fail(self, ticket: Ticket, failure: Failure) -> None:
        self._attempts.ended("unschedulable" if failure.reason == UNSCHEDULABLE else "error", ticket)
        self._failed.append((ticket, failure))
        if attempt_log.isEnabledFor(ATTEMPTS):
            log_failed(ticket, failure, self._parts.clock.monotonic())
