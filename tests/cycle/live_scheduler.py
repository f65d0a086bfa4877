"""A whole scheduler in virtual time in front of an API server in memory."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pilotage.api import Plugin
from pilotage.assembly import build_scheduler, options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import PilotageConfiguration, SchedulerConfiguration
from pilotage.cycle.observer import SchedulerObserver
from pilotage.model import Pod
from pilotage.rng import seeded
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock
from tests.cycle.in_memory_api import InMemoryApi


class LiveScheduler(SchedulerObserver):
    """What happens to pods, seen from outside."""

    def __init__(
        self,
        plugins: Sequence[type[Plugin]] = (),
        configuration: SchedulerConfiguration | None = None,
        gates: Mapping[str, bool] | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.api = InMemoryApi(self.clock)
        client: Any = self.api
        options = options_from_configuration(
            configuration or SchedulerConfiguration(), plugins, None if gates is None else FeatureGates(gates)
        )
        if configuration is None or configuration.additions == PilotageConfiguration():
            # A collection of garbage in a process full of tests may take longer than any cycle.
            options = replace(options, cycle_budget_seconds=math.inf)
        self.on_search: list[Callable[[Pod], None]] = []
        """Called in every cycle once a node was found or not, before anything follows from it."""
        self.scheduler = build_scheduler(client, self.clock, seeded(1), replace(options, observer=self))
        self.queue = self.scheduler.queue
        self.cluster = self.scheduler.cluster
        self.api.connect(self.scheduler.intake)

    def searched(self, pod: Pod) -> None:
        for tell in tuple(self.on_search):
            tell(pod)

    async def put(self, *builders: NodeBuilder | PodBuilder) -> None:
        """Create these objects and let the scheduler do what it can without time passing."""
        for builder in builders:
            if isinstance(builder, NodeBuilder):
                self.api.put_node(builder)
            else:
                self.api.create_pod(builder)
        await self.settle()

    async def settle(self) -> None:
        await self.clock.settle()
        self.check()

    async def after(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        self.check()

    @property
    def attempts(self) -> int:
        """How many attempts have ended."""
        return int(self.scheduler.metrics.schedule_attempts_total.total())

    def check(self) -> None:
        self.queue.check()
        self.cluster.check()

    def node_of(self, name: str) -> str:
        """Where the API server has the pod; "" if it is not bound."""
        node: str = self.api.pods[f"default/{name}"]["spec"].get("nodeName", "")
        return node

    def condition(self, name: str) -> tuple[str, str, str]:
        """(status, reason, message) of PodScheduled."""
        conditions = self.api.pods[f"default/{name}"].get("status", {}).get("conditions", [])
        found = next(c for c in conditions if c["type"] == "PodScheduled")
        return found["status"], found.get("reason", ""), found.get("message", "")

    def notes(self, name: str) -> list[tuple[str, str]]:
        """(reason, note) of the events about a pod."""
        return [(e["reason"], e["note"]) for e in self.api.events if e["regarding"]["name"] == name]

    def requested(self, resource: str = "cpu") -> dict[str, int]:
        """What the scheduler believes to be requested, node by node."""
        nodes = self.cluster.nodes
        return dict(zip(nodes.names, nodes.requested(resource).tolist(), strict=True))


@asynccontextmanager
async def live(
    *plugins: type[Plugin],
    configuration: SchedulerConfiguration | None = None,
    gates: Mapping[str, bool] | None = None,
) -> AsyncIterator[LiveScheduler]:
    """A scheduler that runs until the block ends."""
    scheduler = LiveScheduler(plugins, configuration, gates)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(scheduler.scheduler.run())
        await scheduler.settle()
        yield scheduler
        await scheduler.settle()
        assert not running.done(), "the scheduler must not end by itself"
        running.cancel()
