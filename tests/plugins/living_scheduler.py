"""A scheduler on a living sandbox in virtual time: real watches, real writes, volume controller and kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.kube.client import KubeClient
from pilotage.rng import seeded
from pilotage.sandbox.http.inprocess import InProcessTransport
from pilotage.sandbox.http.server import ApiServer
from tests.sandbox.living_cluster import LivingCluster


class LivingScheduler(LivingCluster):
    """A cluster whose pods are bound by the scheduler."""

    def __init__(self, *, nodes: int, options: SchedulerOptions | None = None) -> None:
        super().__init__(nodes=nodes, binds=False)
        self.server = ApiServer(self.api, token=None, clock=self.clock)
        client = KubeClient(InProcessTransport(self.server))
        self.process = SchedulerProcess(client, self.clock, seeded(3), options or SchedulerOptions())

    async def run(self, seconds: float) -> None:
        """Let that much time pass; controllers act at least every tenth of a second."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            await self.clock.advance(min(0.1, end - self.clock.monotonic()))
            self.life.step()
            await self.clock.settle()
        self.life.check()
        self.process.scheduler.cluster.check()

    def node_of(self, pod: str) -> str:
        node: str = self.get("Pod", pod)["spec"].get("nodeName", "")
        return node

    def why(self, pod: str) -> str:
        """What PodScheduled says."""
        conditions: list[dict[str, Any]] = self.get("Pod", pod)["status"].get("conditions") or []
        found = next((c for c in conditions if c["type"] == "PodScheduled"), {})
        return str(found.get("message", ""))


@asynccontextmanager
async def living(*, nodes: int, options: SchedulerOptions | None = None) -> AsyncIterator[LivingScheduler]:
    """Runs until the block ends."""
    cluster = LivingScheduler(nodes=nodes, options=options)
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(cluster.server.run(), name="api server"),
            tasks.create_task(cluster.process.run(), name="scheduler"),
        ]
        await cluster.run(0.5)
        yield cluster
        assert not any(task.done() for task in running), "nothing ends by itself"
        for task in running:
            task.cancel()
