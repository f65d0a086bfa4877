"""A console over a scheduler that decides in a sandbox, in virtual time and without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotage.assembly import SchedulerOptions
from pilotage.console.site import PREFIX, ConsolePages
from pilotage.console.source import ConsoleSource
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageAnswer, PageRequest
from tests.serve.replicas import World, world

EVERYTHING = Sight()


class LookedAt:
    def __init__(self, cluster: World, source: ConsoleSource) -> None:
        self.cluster = cluster
        self.source = source
        self.console = ConsolePages(source, "test cluster")

    def get(self, path: str = "", sight: Sight = EVERYTHING, known: str = "", **query: str) -> PageAnswer:
        asked = {name: [value] for name, value in query.items()}
        return self.console.answer(
            PageRequest(f"{PREFIX}/{path}", query=asked, headers={"last-event-id": known}), sight
        )

    def text(self, path: str = "", sight: Sight = EVERYTHING, **query: str) -> str:
        return self.get(path, sight, **query).body.decode()

    async def pass_seconds(self, seconds: float) -> None:
        await self.cluster.clock.advance(seconds)
        self.source.take_sample()


@asynccontextmanager
async def looked_at(nodes: int = 3) -> AsyncIterator[LookedAt]:
    async with world(nodes) as cluster:
        replica, _ = await cluster.start("one")
        source = ConsoleSource(replica.process, cluster.clock, SchedulerOptions(), decides=True)
        source.take_sample()
        yield LookedAt(cluster, source)
