"""Workload queueing on one API server: the controller with its engine and its watches, put together."""

from __future__ import annotations

import asyncio
import logging
import random

from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock
from pilotage.jobs.adapters import marks
from pilotage.jobs.configuration.kinds import KNOWN_FRAMEWORKS, QueueingConfiguration
from pilotage.jobs.controller.controller import QueueingController
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.visibility import VisibilityApi
from pilotage.kube.client import KubeClient
from pilotage.kube.reflector import Reflector
from pilotage.model import KINDS
from pilotage.model.kinds import WATCHED_FOR_QUEUEING
from pilotage.observe.metrics import Metrics
from pilotage.observe.workload_metrics import WorkloadMetrics
from pilotage.rng import seeded

log = logging.getLogger(__name__)


class QueueingProcess:
    """Watches from the start; decides only inside of `run`."""

    def __init__(
        self,
        client: KubeClient,
        calls: Calls,
        clock: Clock,
        rng: random.Random,
        configuration: QueueingConfiguration,
        faults: Metrics | None = None,
    ) -> None:
        """`faults`: where skipped objects and failed rounds are kept."""
        faults = faults or Metrics()
        for name in configuration.integrations.frameworks:
            if name not in KNOWN_FRAMEWORKS:
                log.warning("no integration for jobs of this kind: framework=%s known=%s", name, KNOWN_FRAMEWORKS)
        self.metrics = WorkloadMetrics()
        # Its own copy: that workloads are queued must not change where pods go.
        own_chance = seeded(0)
        own_chance.setstate(rng.getstate())
        self.controller = QueueingController(
            lambda: JobQueueing(clock, own_chance, configuration), calls, clock, configuration, self.metrics, faults
        )
        self.reflectors = [
            Reflector(
                client,
                KINDS[resource],
                self.controller.intake,
                clock,
                own_chance,
                # Of all pods only those are of interest that ask for a queue.
                label_selector=marks.QUEUE_NAME if resource == "pods" else "",
                skipped=faults.skipped,
            )
            for resource in WATCHED_FOR_QUEUEING
        ]

        self.visibility = VisibilityApi(self._view)

    def _view(self) -> JobQueueing | None:
        return self.controller.view() if all(one.has_synced for one in self.reflectors) else None

    def watch(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        return [tasks.create_task(one.run(), name=f"watch {one.kind.plural}") for one in self.reflectors]

    async def wait_synced(self) -> None:
        for reflector in self.reflectors:
            await reflector.wait_synced()

    async def follow(self) -> None:
        """What a standby does, until cancelled."""
        await self.controller.follow()

    async def run(self, role: str = "standalone") -> None:
        """Queue, admit and evict until cancelled."""
        await self.wait_synced()
        await self.controller.run(role)
