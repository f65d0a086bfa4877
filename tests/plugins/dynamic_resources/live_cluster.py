"""The whole scheduler with a sandbox and its controllers, in virtual time, for tests with claims and devices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.kube.client import KubeClient
from pilotage.kube.transport import Transport
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.faults import parse_fault
from pilotage.testing import VirtualClock

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
REQUESTS = [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]
Json = dict[str, Any]
Wrap = Callable[[Transport], Transport]


class Live:
    """A cluster of two nodes with a device class; what happens is read from the API server."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock, process: SchedulerProcess) -> None:
        self.api = cluster.api
        self.faults = cluster.faults
        self.clock = clock
        self.scheduler = process.scheduler
        self.api.create("deviceclasses.resource.k8s.io", "", {"metadata": {"name": "gpu"}, "spec": {}})
        template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": REQUESTS}}}}
        self.api.create("resourceclaimtemplates.resource.k8s.io", "default", template)

    def publish(self, node: str, *devices: str | Json, **pool_fields: int) -> None:
        self.publish_more(node, f"slice-{node}", *devices, **pool_fields)

    def publish_more(self, node: str, name: str, *devices: str | Json, **pool_fields: int) -> None:
        """A slice of its own in the pool of a node."""
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1, **pool_fields}
        whole = [{"name": each} if isinstance(each, str) else each for each in devices]
        spec = {"driver": "d.example.com", "pool": pool, "nodeName": node, "devices": whole}
        self.api.create(SLICES, "", {"metadata": {"name": name}, "spec": spec})

    def claim(self, name: str, *requests: Json) -> None:
        spec = {"devices": {"requests": list(requests) or REQUESTS}}
        self.api.create(CLAIMS, "default", {"metadata": {"name": name}, "spec": spec})

    def pod(self, name: str, claims: list[Json], **requests: str) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
        spec = {"containers": [container], "resourceClaims": claims}
        self.api.create("pods", "default", {"metadata": {"name": name}, "spec": spec})

    async def after(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    def node_of(self, name: str) -> str:
        node: str = self.api.get("pods", "default", name)["spec"].get("nodeName", "")
        return node

    def why(self, name: str) -> str:
        """What PodScheduled says."""
        conditions = self.api.get("pods", "default", name)["status"].get("conditions") or []
        return next((str(c.get("message", "")) for c in conditions if c["type"] == "PodScheduled"), "")

    def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and note of the events about a pod."""
        found = self.api.list("events")
        return [
            (event["reason"], event.get("note") or event.get("message", ""))
            for event in found
            if (event.get("regarding") or event.get("involvedObject") or {}).get("name") == name
        ]

    def allocated(self) -> dict[str, list[str]]:
        """Claim -> its devices."""
        return {
            claim["metadata"]["name"]: [
                result["device"] for result in claim["status"]["allocation"]["devices"]["results"]
            ]
            for claim in self.api.list(CLAIMS, "default")
            if claim.get("status", {}).get("allocation")
        }


@asynccontextmanager
async def live(
    options: SchedulerOptions | None = None, transport: Wrap = lambda inner: inner, faults: Sequence[str] = ()
) -> AsyncIterator[Live]:
    """`transport` may put something between the scheduler and the API server."""
    clock = VirtualClock()
    sandbox = EmbeddedOptions(nodes=2, port=None, faults=[parse_fault(text) for text in faults], fault_seed=7)
    async with EmbeddedCluster.running(sandbox, clock, seeded(1)) as cluster:
        client = KubeClient(transport(cluster.transport()))
        process = SchedulerProcess(client, clock, seeded(2), options or SchedulerOptions())
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run(), name="scheduler")
            await clock.advance(1)
            yield Live(cluster, clock, process)
            running.cancel()
