"""The scheduler's side: signs of life go out, pages are answered between two cycles, the lease comes in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pilotage.clock import Clock
from pilotage.observe.metrics import Metrics
from pilotage.observe.transfer import add_changes
from pilotage.serve.page import PageRequest
from pilotage.serve.pages import readiness
from pilotage.serve.service import LeadershipLost, SchedulerService
from pilotage.serve.site import Site
from pilotage.supervise.messages import (
    Begin,
    Built,
    Channel,
    Health,
    Leading,
    LeaseLost,
    LeaseReleased,
    PageAnswered,
    PageAsked,
    ServerChecked,
    ToScheduler,
)
from pilotage.supervise.shared_lease import SharedElection, SharedLease
from pilotage.supervise.shared_state import SharedState

BEAT_SECONDS: Final = 0.5
_GONE: Final = "the supervising process is gone"


class SupervisorLink:
    """To the process that supervises this one. Without an election it leads from the start."""

    def __init__(
        self, channel: Channel[ToScheduler], state: SharedState, election: SharedElection | None, clock: Clock
    ) -> None:
        self._channel = channel
        self._state = state
        self._clock = clock
        self.elector = None if election is None else SharedLease(election, clock, channel.send)

    def server_checked(self) -> None:
        self._channel.send(ServerChecked())

    async def serve(self, service: SchedulerService, site: Site, metrics: Metrics) -> None:
        """Until the service ends; LeadershipLost if the supervisor is gone."""
        await self._begun()
        async with asyncio.TaskGroup() as tasks:
            others = [
                tasks.create_task(self._listen(site, metrics), name="supervisor"),
                tasks.create_task(self._beat(lambda: readiness(service)), name="signs of life"),
            ]
            await service.run()
            for task in others:
                task.cancel()

    async def _begun(self) -> None:
        self._channel.send(Built())
        if not isinstance(await self._channel.receive(), Begin):
            raise LeadershipLost(_GONE)

    async def _listen(self, site: Site, metrics: Metrics) -> None:
        while (message := await self._channel.receive()) is not None:
            match message:
                case PageAsked():
                    add_changes(metrics, message.measured)
                    self._channel.send(_answered(site, message))
                case Leading() if self.elector is not None:
                    self.elector.granted()
                case LeaseLost(why) if self.elector is not None:
                    self.elector.ended(why)
                case LeaseReleased() if self.elector is not None:
                    self.elector.ended("it was given back")
                case _:
                    pass
        if self.elector is not None:
            self.elector.ended(_GONE)
        raise LeadershipLost(_GONE)

    async def _beat(self, problems: Callable[[], dict[str, str]]) -> None:
        """The loop turns: say so, and what is wrong with us if that has changed."""
        said: dict[str, str] | None = None
        while True:
            self._state.beat(self._clock.monotonic())
            if (now := problems()) != said:
                self._channel.send(Health(now))
                said = now
            await self._clock.sleep(BEAT_SECONDS)


def _answered(site: Site, asked: PageAsked) -> PageAnswered:
    request = PageRequest(asked.path, asked.method, asked.query, asked.headers, asked.body)
    answer = site.answer(request)
    return PageAnswered(asked.number, answer.status, answer.body, answer.content_type, answer.headers)
