"""Workload queueing on one API server: the controller with its engine and its watches, put together."""

from __future__ import annotations

import asyncio
import random

from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock
from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.kinds.registry import JobKinds
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.controller.controller import QueueingController
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.room_on_nodes import NodeRoom
from pilotage.jobs.visibility import VisibilityApi
from pilotage.kube.client import KubeClient
from pilotage.kube.reflector import Reflector, WatchedKind
from pilotage.model import KINDS
from pilotage.model.kinds import WATCHED_FOR_QUEUEING, KindInfo
from pilotage.observe.metrics import Metrics
from pilotage.observe.workload_metrics import WorkloadMetrics
from pilotage.rng import seeded


def _watched(kinds: JobKinds) -> list[KindInfo]:
    # Without the integration of Jobs they are watched all the same: what belongs to them is recognised by them.
    always = [KINDS[plural] for plural in WATCHED_FOR_QUEUEING]
    return always + [one.resource for one in kinds if one.resource not in always]


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
        room: NodeRoom | None = None,
    ) -> None:
        """`faults`: where skipped objects and failed rounds are kept; `room`: what is known of nodes."""
        faults = faults or Metrics()
        self.metrics = WorkloadMetrics()
        # Its own copy: that workloads are queued must not change where pods go.
        own_chance = seeded(0)
        own_chance.setstate(rng.getstate())
        integrations = configuration.integrations
        kinds = JobKinds(integrations.frameworks, integrations.external_frameworks)
        self.controller = QueueingController(
            lambda room: JobQueueing(clock, own_chance, configuration, room),
            calls,
            clock,
            configuration,
            self.metrics,
            faults,
            kinds,
            room,
        )
        self.reflectors = [
            Reflector(
                client,
                # Of all pods only those are of interest that ask for a queue.
                WatchedKind(resource, label_selector=marks.QUEUE_NAME if resource.plural == "pods" else ""),
                self.controller.intake,
                clock,
                own_chance,
                skipped=faults.skipped,
            )
            # A kind that is not installed has no objects; it is asked for again and again.
            for resource in _watched(kinds)
        ]

        self.visibility = VisibilityApi(self._view, configuration)

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
