"""The scheduler loop: one owner of cluster and queue, one pod at a time.

    inbox -> cluster, queue        between cycles
    queue.pop -> scheduling cycle -> binding task, or question to extenders -> the same cycle again

A cycle is synchronous: nothing can change under it. Binding runs beside it and reports through the inbox. What a cycle
writes is sent in the background, unless a gate (SchedulerAsyncAPICalls, SchedulerAsyncPreemption) is off: then the loop
runs one cycle at a time and waits for its calls, or its victims, before the next.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.synchronous_calls import SynchronousCalls
from pilotage.clock import Clock
from pilotage.cycle.eviction import Evictor
from pilotage.cycle.handle import SchedulerEffects
from pilotage.cycle.intake import Intake
from pilotage.cycle.placement import ProfileEngines
from pilotage.cycle.plugin_tasks import PluginTasks
from pilotage.cycle.scheduling_cycle import SchedulingCycle
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.observe.metrics import Metrics
from pilotage.observe.task_errors import TaskErrors
from pilotage.queue.sub_queues import SubQueue

_CYCLES_PER_TURN = 16
_TICK_SECONDS = 1.0
LONGEST_END_SECONDS = 15.0
"""What an orderly end waits for bindings and calls; Kubernetes gives a pod 30 s before it kills."""
_LOOK_AGAIN_SECONDS = 0.02


class _Ended(Exception):
    """Everything that was to be done is done."""


class SchedulingLoop:
    """Schedules pods for ever. Watch events come in through `intake`."""

    def __init__(
        self,
        clock: Clock,
        metrics: Metrics,
        intake: Intake,
        cycle: SchedulingCycle,
        effects: SchedulerEffects,
        beside: BesideTheLoop,
        follow_up: FollowUp | None = None,
    ) -> None:
        """With `follow_up`, the loop runs one cycle at a time, and waits for what follows from it."""
        self.metrics = metrics
        self.intake = intake
        self.inbox = intake.inbox
        self.queue = intake.queue
        self.cluster = intake.cluster
        self.cycle = cycle
        self.effects = effects
        self.dispatcher = beside.dispatcher
        """Where everything that is written goes out, also what is written beside the scheduler."""
        self._clock = clock
        self._beside = beside
        self._follow_up = follow_up
        self._guard = cycle.guard
        self._cpu_seconds = cycle.guard.budgets.cpu_seconds
        self._is_ending = False

    @property
    def waiting_pods(self) -> WaitingPods:
        return self.effects.waiting_pods

    async def run(self) -> None:
        """Until `end` is called or it is cancelled. Call it when the first list of every watched kind was put in.

        A scheduler that is cancelled may write nothing any more (its lease is lost): what that costs is logged.
        """
        try:
            await self._run()
        except asyncio.CancelledError:
            self.effects.recorder.catch_up(is_busy=False)
            self.dispatcher.abandon("the scheduler was stopped at once")
            raise

    async def _run(self) -> None:
        with self._guard.watching():
            try:
                async with asyncio.TaskGroup() as tasks:
                    self.start(tasks)
                    await self._loop(tasks)
                    self.cycle.stop_asking()
                    deadline = self._clock.monotonic() + LONGEST_END_SECONDS
                    await self._wind_down(deadline)
                    await self._beside.end_plugins(self.cycle.engines)
                    await self._wind_down(deadline)
                    await self.dispatcher.stop(grace_seconds=0.0)
                    # Ends what is left in the group: timers, the dispatcher, pods that wait for permission.
                    raise _Ended
            except* _Ended:
                pass
            finally:
                await self.cycle.consultation.close()

    def end(self) -> None:
        """Begin nothing new; `run` returns when what was decided is bound and all statuses and Events are written."""
        self._is_ending = True
        self.inbox.wake()

    async def follow(self) -> None:
        """Keep cluster and queue up to date without scheduling, until cancelled: what a standby does."""
        while True:
            self.drain_inbox()
            if self.inbox.is_empty:
                await self.inbox.arrival()
            else:
                await self._clock.sleep(0)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start everything but the loop: for those who run the cycles themselves, one by one."""
        self._beside.start(tasks)

    def start_by_hand(self, tasks: asyncio.TaskGroup) -> Ticks:
        """The same for those who also keep the time: nothing is done every second but what they let be done."""
        return self._beside.start_by_hand(tasks)

    async def _wind_down(self, deadline: float) -> None:
        while self._is_at_work() and self._clock.monotonic() < deadline:
            await self._clock.sleep(_LOOK_AGAIN_SECONDS)
            self.drain_inbox()

    def _is_at_work(self) -> bool:
        """Whether a pod is being bound, or a call is to be sent. Pods that wait for permission may wait for ever."""
        in_flight = self.queue.size(SubQueue.IN_FLIGHT) - sum(1 for _ in self.waiting_pods)
        return in_flight > 0 or not self.dispatcher.is_idle

    async def _loop(self, tasks: asyncio.TaskGroup) -> None:
        observer, recorder = self.cycle.observer, self.effects.recorder
        while not self._is_ending:
            self.drain_inbox()
            has_worked = await self.turn(tasks)
            observer.idle()
            recorder.catch_up(is_busy=has_worked)
            if has_worked or not self.inbox.is_empty:
                # Give way to the network, to the bindings, and to the watches that fill the inbox.
                await self._clock.sleep(0)
            else:
                await self.inbox.arrival()
        recorder.catch_up(is_busy=False)

    def drain_inbox(self) -> None:
        """Let what has arrived take effect."""
        if self.inbox.is_empty:
            # Most turns bring none, and looking at the CPU's clock takes longer than finding that out.
            self.inbox.drain()
            return
        started = self._cpu_seconds()
        self._guard.slow_plugins.begin()
        self.inbox.drain()
        self.cluster.settle()
        self._guard.slow_plugins.end()
        self.metrics.intake_cpu_seconds_total.add(amount=self._cpu_seconds() - started)

    async def turn(self, tasks: asyncio.TaskGroup) -> bool:
        """A few cycles in a row; False if there was nothing to do."""
        if not self.queue.has_next and not self.cycle.consultation.has_answered:
            return False
        if self._follow_up is not None:
            return await self._cycle_in_place(tasks, self._follow_up)
        started = self._cpu_seconds()
        worked = False
        for _ in range(_CYCLES_PER_TURN):
            if not self.run_cycle(tasks):
                break
            worked = True
        self._guard.slow_plugins.end()
        self.metrics.cycle_cpu_seconds_total.add(amount=self._cpu_seconds() - started)
        return worked

    def run_cycle(self, tasks: asyncio.TaskGroup) -> bool:
        """Schedule the next pod, and let its binding begin; False if there is nothing to schedule."""
        has_begun = self._begin(tasks)
        if has_begun:
            self.cycle.end()
        return has_begun

    def _begin(self, tasks: asyncio.TaskGroup) -> bool:
        """A pod of which extenders were asked goes before others: it was popped before them."""
        consultation = self.cycle.consultation
        answered = consultation.next_answered()
        if answered is not None:
            self.cycle.go_on(answered, tasks)
            return True
        ticket = self.queue.pop(consultation.is_held)
        if ticket is not None:
            self.cycle.begin(ticket, tasks)
        return ticket is not None

    async def _cycle_in_place(self, tasks: asyncio.TaskGroup, follow_up: FollowUp) -> bool:
        """One cycle and everything that follows from it."""
        failed_before = follow_up.failures
        if not self._begin(tasks):
            return False
        while follow_up.awaits_victims:
            await self.inbox.arrival()
            self.drain_inbox()
        self.cycle.end(clears_nominations=follow_up.failures > failed_before)
        await follow_up.calls_over()
        return True


class FollowUp:
    """What a cycle waits for: its victims (SchedulerAsyncPreemption is off), its calls (SchedulerAsyncAPICalls is)."""

    def __init__(self, evictor: Evictor | None, calls: SynchronousCalls | None) -> None:
        self._evictor = evictor
        self._calls = calls

    @property
    def failures(self) -> int:
        """Of evictions, so far."""
        return 0 if self._evictor is None else self._evictor.failures

    @property
    def awaits_victims(self) -> bool:
        return self._evictor is not None and self._evictor.under_way > 0

    async def calls_over(self) -> None:
        if self._calls is not None:
            await self._calls.settled()


class Tick(NamedTuple):
    """Something that is done again and again."""

    name: str
    every: int
    """Seconds."""
    work: Callable[[], object]
    wait: Callable[[], float]
    """How many seconds there will be nothing to do, for what is known now; infinite if nothing waits."""


class Ticks:
    """What is done every second or so."""

    def __init__(self, ticks: Sequence[Tick], errors: TaskErrors) -> None:
        self._ticks = ticks
        self._errors = errors
        self.last = 0
        """The second in which something was done last."""

    def run(self, second: int) -> None:
        """Do what is due in this second since the start."""
        self.last = second
        for tick in self._ticks:
            if second % tick.every == 0:
                with self._errors.contained(tick.name):
                    tick.work()

    def waiting(self) -> set[str]:
        """The names of those that will have something to do, for what is known now."""
        return {tick.name for tick in self._ticks if tick.wait() != math.inf}

    def next(self, now: float) -> float:
        """The first second that has something to do, for what is known now; infinite if none has."""
        found = math.inf
        for tick in self._ticks:
            wait = tick.wait()
            if wait != math.inf:
                second = max(self.last // tick.every + 1, math.ceil((now + wait) / tick.every))
                found = min(found, tick.every * second)
        return found


class BesideTheLoop:
    """What runs beside the cycles: calls that are sent, what is done every second or so, and the tasks of plugins."""

    def __init__(self, dispatcher: Dispatcher, plugin_tasks: PluginTasks, ticks: Ticks, clock: Clock) -> None:
        self.dispatcher = dispatcher
        self._plugin_tasks = plugin_tasks
        self._ticks = ticks
        self._clock = clock

    def start(self, tasks: asyncio.TaskGroup) -> None:
        tasks.create_task(self.dispatcher.run(), name="api call dispatcher")
        tasks.create_task(self._keep_time(), name="backoff and flush")
        self._plugin_tasks.start(tasks)

    def start_by_hand(self, tasks: asyncio.TaskGroup) -> Ticks:
        """Without those who do something every second or so; calls that nobody answers are waited for without end."""
        self.dispatcher.open(tasks)
        self._plugin_tasks.start(tasks)
        return self._ticks

    async def _keep_time(self) -> None:
        for second in itertools.count(1):
            await self._clock.sleep(_TICK_SECONDS)
            self._ticks.run(second)

    async def end_plugins(self, engines: ProfileEngines) -> None:
        """Their tasks, then themselves; what they write at last is still sent."""
        await self._plugin_tasks.end([plugin for engine in engines.values() for plugin in engine.profile.plugins])
