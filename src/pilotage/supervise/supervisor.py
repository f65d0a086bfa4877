"""Keeps the lease for the scheduler, answers for it, and ends it when it is stuck.

    scheduler asks for the lease -> acquire, hold: the time of each renewal is in shared memory -> it gives it back

    it ends by itself       the lease, if it still has it, is given back when what it sent last must have arrived
    it gives no sign of life for too long    its stack is logged, it is killed, its pod is marked, the lease given back
    the lease is lost       it is asked to stop, and killed before another one can have the lease if it does not

A cycle that takes long, or C code that does not let go of the interpreter, costs neither the lease nor the health
pages. The fence is as before: the scheduler looks at the time of renewal for every write, and this process never renews
for a scheduler that it cannot end.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import Any, Final

import msgspec
from msgspec import Struct

from pilotage.api.conditions import BUDGET_EXCEEDED, POD_SCHEDULED, PodCondition
from pilotage.calls.pod_status import new_conditions, write_status
from pilotage.clock import Clock, rfc3339
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.leader_election import LeaderElector
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS, Pod
from pilotage.observe.metrics import Metrics
from pilotage.observe.transfer import Difference
from pilotage.serve.health import READINESS, HealthCheck, election_check, three_pages
from pilotage.serve.metrics_pages import count_checks
from pilotage.serve.service import LeadershipLost
from pilotage.supervise.forwarded_pages import ForwardedPages
from pilotage.supervise.messages import (
    AcquireLease,
    Begin,
    Built,
    Channel,
    Health,
    Leading,
    LeaseLost,
    LeaseReleased,
    PageAnswered,
    ReleaseLease,
    ServerChecked,
    ToSupervisor,
)
from pilotage.supervise.scheduler_process import SupervisedScheduler
from pilotage.supervise.shared_state import Work
from pilotage.tasks import sole_error

log = logging.getLogger(__name__)

_TICK_SECONDS: Final = 0.25
_DYING_TICK_SECONDS: Final = 0.01
_STACK_SECONDS: Final = 0.5
_ENDING_SILENCE_SECONDS: Final = 5.0
_HANG_UP_SECONDS: Final = 5.0
_LONGEST_STEP_SECONDS: Final = 1.0
"""How long a scheduler that has nothing more to say may take to end."""


class SchedulerEnded(Exception):
    """The scheduler did not end by itself, or not in order; the text says how."""


class LeaseCandidate(Struct, frozen=True):
    """Who stands for election, and the client with which a pod is marked."""

    elector: LeaderElector
    client: KubeClient


class Supervisor:
    """Of one scheduler process. Made inside the event loop."""

    def __init__(
        self,
        child: SupervisedScheduler,
        channel: Channel[ToSupervisor],
        candidate: LeaseCandidate | None,
        metrics: Metrics,
        clock: Clock,
        *,
        longest_silence: float,
    ) -> None:
        """`longest_silence` in seconds; 0 for any."""
        self._child = child
        self._channel = channel
        self._candidate = candidate
        self._clock = clock
        self._longest_silence = longest_silence
        self._silence = Silence()
        self._problems = dict.fromkeys(READINESS, "the scheduler has not begun")
        self._must_end_by: float | None = None
        self._lost = ""
        self._is_stopping = False
        self._is_lease_wanted, self._is_gone = asyncio.Event(), asyncio.Event()
        self.is_server_checked = asyncio.Event()
        self.pages = ForwardedPages(
            three_pages(
                count_checks(metrics),
                election=[] if candidate is None else [election_check(candidate.elector.election, clock)],
                ready=[HealthCheck(name, lambda name=name: self._problems.get(name, "")) for name in READINESS],  # type: ignore[misc]
                alive=[HealthCheck("scheduler", self._silence_problem)],
            ),
            Difference(metrics),
            channel.send,
        )

    async def built(self) -> int | None:
        """None as soon as the scheduler is put together; its exit code if it cannot be."""
        if isinstance(await self._channel.receive(), Built):
            return None
        self._is_gone.set()
        return await self._watch()

    async def run(self) -> int:
        """Until the scheduler has ended; its exit code. SchedulerEnded or LeadershipLost if it had to be killed."""
        with sole_error():
            async with asyncio.TaskGroup() as tasks:
                keeping = tasks.create_task(self._keep_lease(), name="lease")
                listening = tasks.create_task(self._listen(tasks, keeping), name="scheduler")
                self._channel.send(Begin())
                try:
                    return await self._watch()
                finally:
                    self.pages.is_open = False
                    listening.cancel()
                    await self._end_lease(keeping)

    def stop(self) -> None:
        """Let the scheduler come to an orderly end. One that is stuck has less time now."""
        self._is_stopping = True
        self._child.terminate()
        self._longest_silence = min(self._longest_silence or _ENDING_SILENCE_SECONDS, _ENDING_SILENCE_SECONDS)

    # --- the lease ---------------------------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        await self._is_lease_wanted.wait()
        if self._candidate is None:
            return
        elector = self._candidate.elector
        await elector.acquire()
        self._channel.send(Leading())
        self._lost = await elector.hold()
        self._channel.send(LeaseLost(self._lost))
        timing = elector.election.timing
        # Before the lease can be another one's: what it has not sent by then it never sends.
        self._end_within((timing.lease_seconds - timing.renew_deadline_seconds) / 2)

    async def _release(self, keeping: asyncio.Task[None]) -> None:
        """The scheduler has nothing more to write."""
        keeping.cancel()
        await asyncio.wait([keeping])
        if self._candidate is not None:
            await self._candidate.elector.release()
        self._channel.send(LeaseReleased())

    async def _end_lease(self, keeping: asyncio.Task[None]) -> None:
        """The scheduler is dead. What it sent last is given the time that a lost lease would give it to arrive."""
        keeping.cancel()
        await asyncio.wait([keeping])
        if self._candidate is None:
            return
        elector = self._candidate.elector
        if elector.is_leading:
            timing, alive_at = elector.election.timing, self._child.state.alive_at or 0.0
            arrived_at = alive_at + timing.lease_seconds - timing.renew_deadline_seconds
            await self._clock.sleep(max(0.0, arrived_at - self._clock.monotonic()))
        await elector.release()

    # --- the scheduler -----------------------------------------------------------------------------------------

    async def _listen(self, tasks: asyncio.TaskGroup, keeping: asyncio.Task[None]) -> None:
        while (message := await self._channel.receive()) is not None:
            match message:
                case PageAnswered():
                    self.pages.answered(message)
                case Health(problems):
                    self._problems = dict(problems)
                    self.pages.is_open = True
                case ServerChecked():
                    self.is_server_checked.set()
                case AcquireLease():
                    self._is_lease_wanted.set()
                case Built():
                    pass
                case ReleaseLease():
                    tasks.create_task(self._release(keeping), name="lease release")
        self._is_gone.set()
        self._end_within(_HANG_UP_SECONDS)

    async def _watch(self) -> int:
        state = self._child.state
        while (code := self._child.poll()) is None:
            now = self._clock.monotonic()
            silent = self._silence.look(state.alive_at, now)
            if self._candidate is not None:
                state.set_slow_paths(self._candidate.elector.slow_paths)
            if self._longest_silence and silent > self._longest_silence:
                await self._end_unless_alive(silent)
            if self._must_end_by is not None and now > self._must_end_by:
                await self._kill()
                raise LeadershipLost(self._lost) if self._lost else SchedulerEnded("the scheduler hung up")
            if self._is_gone.is_set():
                await self._clock.sleep(_DYING_TICK_SECONDS)
            else:
                await self._first_of(self._is_gone.wait(), self._clock.sleep(_TICK_SECONDS))
        if self._is_stopping and code == -signal.SIGTERM:
            # It had not begun yet: there was nothing to bring to an end.
            return 0
        if code < 0:
            raise SchedulerEnded(f"the scheduler was ended by signal {-code}")
        return code

    async def _end_unless_alive(self, seconds: float) -> None:
        """Say where it is stuck, and end it if it still is; SchedulerEnded then."""
        child, state = self._child, self._child.state
        alive_at, work = state.alive_at, state.work
        shown = "nothing" if work is None else f"{work.namespace}/{work.name}"
        child.ask_for_stack()
        await self._clock.sleep(_STACK_SECONDS)
        stack, is_alive = " ".join(child.stack().split()) or "unknown", state.alive_at != alive_at
        what = "goes on" if is_alive else "is killed"
        log.error("the scheduler gave no sign of life for %.0f s and %s: pod=%s stack=%s", seconds, what, shown, stack)
        if is_alive:
            return
        await self._kill()
        if work is not None and self._candidate is not None and self._candidate.elector.is_leading:
            await mark_ended(self._candidate.client, work, seconds, self._clock)
        raise SchedulerEnded(f"the scheduler gave no sign of life for {seconds:.0f} s while it worked on {shown}")

    async def _kill(self) -> None:
        self._child.kill()
        while self._child.poll() is None:
            await self._clock.sleep(_DYING_TICK_SECONDS)

    def _end_within(self, seconds: float) -> None:
        deadline = self._clock.monotonic() + seconds
        self._must_end_by = deadline if self._must_end_by is None else min(self._must_end_by, deadline)

    def _silence_problem(self) -> str:
        silent = self._silence.seconds
        is_long = self._longest_silence and silent > self._longest_silence
        return f"the scheduler has given no sign of life for {silent:.0f} s" if is_long else ""

    @staticmethod
    async def _first_of(*waiting: Coroutine[Any, Any, Any]) -> None:
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(one, name="waiting") for one in waiting]
            await asyncio.wait(started, return_when=asyncio.FIRST_COMPLETED)
            for task in started:
                task.cancel()


async def mark_ended(client: KubeClient, work: Work, seconds: float, clock: Clock) -> None:
    """Say in a pod's status that its scheduling was ended by killing the process: the next leader tries it late.

    What goes wrong is logged.
    """
    kind = KINDS["pods"]
    by = f" in plugin {work.plugin}" if work.plugin else ""
    message = (
        f"scheduling this pod was ended: the scheduler gave no sign of life for {seconds:.0f} s{by} and was restarted"
    )
    try:
        pod: Pod = kind.decode(await client.get(kind, work.namespace, work.name))
        if pod.uid != work.uid or pod.node_name:
            return
        now = rfc3339(clock.time())
        condition = PodCondition(POD_SCHEDULED, "False", BUDGET_EXCEEDED, message, pod.generation, now)
        await write_status(client, pod, new_conditions(pod, [condition]))
    except (ApiStatusError, TransportError, msgspec.MsgspecError) as error:
        log.warning("the pod is not marked: pod=%s/%s error=%s", work.namespace, work.name, error)


class Silence:
    """How long the scheduler has given no sign of life, counted in steps of the watcher.

    A machine that was asleep, or a pair of processes that was stopped together, must not look like a stuck scheduler:
    time counts only as far as the watcher itself was awake in it.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._alive_at: float | None = None
        self._looked_at: float | None = None

    def look(self, alive_at: float | None, now: float) -> float:
        """How long nothing has been heard; 0 before the first sign of life."""
        is_news = alive_at != self._alive_at
        step = 0.0 if self._looked_at is None else min(now - self._looked_at, _LONGEST_STEP_SECONDS)
        self._alive_at, self._looked_at = alive_at, now
        self.seconds = 0.0 if is_news or alive_at is None else self.seconds + step
        return self.seconds
