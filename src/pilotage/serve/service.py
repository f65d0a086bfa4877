"""A scheduler from its start to an orderly end, alone or as one of several candidates.

    watch --> synced --> standby: follows the cluster, schedules nothing --> leads: schedules, renews the lease
                                                                               |            \\
                                         stop(): bindings in flight are finished, then the lease is given back
                                                                               |
                                                          lease lost: everything stops at once, LeadershipLost

A standby has the whole cluster in memory when its turn comes. Before it decides anything it lists anew what the leader
before it may have written a moment ago. A process that has lost the lease does not try again in the same
process: a fresh one has no half-done work in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pilotage.assembly import SchedulerProcess
from pilotage.serve.elector import Elector
from pilotage.tasks import sole_error


class LeadershipLost(Exception):
    """Another scheduler may be at work; this process must end."""


class SchedulerService:
    """Runs once. Without an elector it leads from the start."""

    def __init__(
        self,
        process: SchedulerProcess,
        elector: Elector | None = None,
        *,
        prepare: Callable[[], Awaitable[None]] | None = None,
        delays_cache: bool = False,
    ) -> None:
        """`prepare` is done before anything else; `delays_cache`: a standby does not watch (delayCacheUntilActive)."""
        self.process = process
        self._prepare = prepare
        self.elector = elector
        self._delays_cache = delays_cache and elector is not None
        self._stop = asyncio.Event()
        self.is_scheduling = False

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Come to an orderly end; `run` returns then."""
        self._stop.set()

    async def run(self) -> None:
        """Until `stop`; LeadershipLost if the lease is lost."""
        with sole_error():
            async with asyncio.TaskGroup() as tasks:
                stopping = tasks.create_task(self._stop.wait(), name="stop")
                working = tasks.create_task(self._work(), name="service")
                await asyncio.wait([stopping, working], return_when=asyncio.FIRST_COMPLETED)
                if self.is_scheduling and not working.done():
                    self.process.scheduler.end()
                    await asyncio.wait([working])
                working.cancel()
                stopping.cancel()

    async def _work(self) -> None:
        if self._prepare is not None:
            await self._prepare()
        async with asyncio.TaskGroup() as tasks:
            watches = [] if self._delays_cache else self.process.watch(tasks)
            if watches:
                await self.process.wait_synced()
            try:
                await self._elected()
                if not watches:
                    watches = self.process.watch(tasks)
                await self._lead()
            finally:
                if self.elector is not None:
                    await self.elector.release()
            for watch in watches:
                watch.cancel()

    async def _elected(self) -> None:
        """Wait for our turn, and take in what happens meanwhile."""
        if self.elector is None:
            return
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self.process.follow(), name="standby")
            await self.elector.acquire()
            following.cancel()

    async def _lead(self) -> None:
        """Schedule until the scheduler ends; LeadershipLost if the lease goes first."""
        async with asyncio.TaskGroup() as tasks:
            scheduling = tasks.create_task(self._schedule(), name="scheduler")
            if self.elector is None:
                return
            holding = tasks.create_task(self.elector.hold(), name="leader election")
            done, _ = await asyncio.wait([scheduling, holding], return_when=asyncio.FIRST_COMPLETED)
            if holding in done:
                self.is_scheduling = False
                raise LeadershipLost(holding.result())
            holding.cancel()

    async def _schedule(self) -> None:
        await self.process.wait_synced()
        if self.elector is not None and not self._delays_cache:
            await self.process.catch_up()
        self.is_scheduling = True
        await self.process.lead("standalone" if self.elector is None else "leader")
