"""Where a scenario plays: the real scheduler on an API server in memory, in virtual time, with a hand on its loop.

The loop is ours, so that it can be paused and run cycle by cycle; everything else is the scheduler's own. After each
piece of work the news is taken in, so that a write is seen before the next piece of the scheduler's work begins.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pilotage.assembly import ConnectExtender, SchedulerOptions, build_scheduler
from pilotage.clock import Clock
from pilotage.cycle.observer import SchedulerObserver
from pilotage.extenders.http_transport import HttpExtender
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.queue.pod_groups import QueuedGroup
from pilotage.queue.scheduling_queue import BACKOFF_COMPLETE, POP_FROM_BACKOFF
from pilotage.queue.sub_queues import HEAPS, QueuedPodInfo, SubQueue
from pilotage.rng import seeded
from pilotage.simulate.memory_api import MemoryApi
from pilotage.testing import VirtualClock

_POOL: Final = (SubQueue.UNSCHEDULABLE, SubQueue.GATED)


class Stage(SchedulerObserver):
    """One scheduler with its cluster, and a memory of what has moved."""

    def __init__(
        self,
        options: SchedulerOptions,
        tasks: asyncio.TaskGroup,
        make_api: Callable[[Clock], MemoryApi] = MemoryApi,
        connect_extender: ConnectExtender = HttpExtender,
    ) -> None:
        self.clock = VirtualClock()
        self.api = make_api(self.clock)
        self.is_paused = False
        self.attempts: Counter[str] = Counter()
        """Pops by UID."""
        self.group_attempts: Counter[str] = Counter()
        """Turns of groups by name."""
        self.requeued_by: dict[str, str | None] = {}
        """By UID: what brought the pod into the active or backoff queue; None if it is in the pool."""
        self.popped: list[str] = []
        self.requeued: set[str] = set()
        self._pool_before: set[str] = set()
        self._injections: dict[str, Callable[[], None]] = {}
        self.scheduler = build_scheduler(
            self.api, self.clock, seeded(1), replace(options, observer=self), connect_extender=connect_extender
        )
        self.queue = self.scheduler.queue
        self._tasks = tasks
        self.api.connect(self.scheduler.intake, self.scheduler.cluster)
        self.scheduler.start(tasks)
        tasks.create_task(self._loop(), name="scheduling loop")

    # --- steps -------------------------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """Forget what the step before has moved."""
        self.popped.clear()
        self.requeued.clear()
        self._pool_before = {entry.pod.uid for entry in self.queue.entries() if entry.home in _POOL}

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self.scheduler.inbox.wake()

    async def cycles(self, count: int) -> None:
        """Up to so many cycles while the loop is paused."""
        for _ in range(count):
            self.scheduler.drain_inbox()
            if not self._cycle():
                return
            await self.clock.settle()

    def inject(self, pod: str, action: Callable[[], None]) -> None:
        """Do this in the pod's next cycle, after the search for a node and before anything follows from it."""
        self._injections[pod] = action

    # --- inside ------------------------------------------------------------------------------------------------

    async def _loop(self) -> None:
        while True:
            self.scheduler.drain_inbox()
            if not self.is_paused and self._cycle():
                await self.clock.sleep(0)
            else:
                await self.scheduler.inbox.arrival()

    def _cycle(self) -> bool:
        return self.scheduler.run_cycle(self._tasks)

    # --- what the scheduler does -------------------------------------------------------------------------------

    def cycle_began(self, pod: Pod) -> None:
        self.popped.append(pod.name)
        self.attempts[pod.uid] += 1

    def group_cycle_began(self, group: PodGroup, pods: Sequence[Pod]) -> None:
        self.popped.append(f"group:{group.name}")
        self.group_attempts[group.name] += 1
        for pod in pods:
            self.attempts[pod.uid] += 1

    def searched(self, pod: Pod) -> None:
        action = self._injections.pop(pod.name, None)
        if action is not None:
            action()
            self.scheduler.drain_inbox()

    def pod_moved(self, entry: QueuedPodInfo, why: str) -> None:
        for pod in [m.pod for m in entry.members.values()] if isinstance(entry, QueuedGroup) else [entry.pod]:
            self._pod_moved(pod, entry.home, why)

    def _pod_moved(self, pod: Pod, home: SubQueue, why: str) -> None:
        if home not in HEAPS:
            self.requeued_by[pod.uid] = None
            return
        if why not in (BACKOFF_COMPLETE, POP_FROM_BACKOFF):
            self.requeued_by[pod.uid] = why
        if pod.uid in self._pool_before:
            self.requeued.add(pod.name)
