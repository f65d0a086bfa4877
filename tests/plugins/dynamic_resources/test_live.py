"""The whole scheduler in front of a sandbox with its controllers, in virtual time: pods with claims get devices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.kube.client import KubeClient
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
REQUESTS = [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]
Json = dict[str, Any]


class Live:
    """A cluster of two nodes with a device class; what happens is read from the API server."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.api = cluster.api
        self.clock = clock
        self.api.create("deviceclasses.resource.k8s.io", "", {"metadata": {"name": "gpu"}, "spec": {}})
        template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": REQUESTS}}}}
        self.api.create("resourceclaimtemplates.resource.k8s.io", "default", template)

    def publish(self, node: str, *devices: str) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d.example.com", "pool": pool, "nodeName": node, "devices": [{"name": d} for d in devices]}
        self.api.create(SLICES, "", {"metadata": {"name": f"slice-{node}"}, "spec": spec})

    def claim(self, name: str) -> None:
        self.api.create(CLAIMS, "default", {"metadata": {"name": name}, "spec": {"devices": {"requests": REQUESTS}}})

    def pod(self, name: str, claims: list[Json], **requests: str) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
        spec = {"containers": [container], "resourceClaims": claims}
        self.api.create("pods", "default", {"metadata": {"name": name}, "spec": spec})

    async def after(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    def node_of(self, name: str) -> str:
        node: str = self.api.get("pods", "default", name)["spec"].get("nodeName", "")
        return node

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
async def live() -> AsyncIterator[Live]:
    clock = VirtualClock()
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=2, port=None), clock, seeded(1)) as cluster:
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, seeded(2), SchedulerOptions())
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run(), name="scheduler")
            await clock.advance(1)
            yield Live(cluster, clock)
            running.cancel()


async def test_each_pod_of_a_template_gets_a_device_of_its_own() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "a", "b")
        for number in range(3):
            cluster.pod(f"p{number}", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        placed = sorted(cluster.node_of(f"p{number}") for number in range(3))
        assert placed == ["", "node-00001", "node-00001"]
        assert sorted(cluster.allocated().values()) == [["a"], ["b"]]


async def test_pods_that_share_a_generated_claim_all_start_when_the_driver_publishes_its_devices() -> None:
    async with live() as cluster:
        cluster.pod("first", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        generated = cluster.api.get("pods", "default", "first")["status"]["resourceClaimStatuses"][0]
        for name in ("second", "third"):
            cluster.pod(name, [{"name": "d", "resourceClaimName": generated["resourceClaimName"]}])
        await cluster.after(5)
        assert [cluster.node_of(name) for name in ("first", "second", "third")] == ["", "", ""]
        cluster.publish("node-00002", "only")
        await cluster.after(20)
        assert [cluster.node_of(name) for name in ("first", "second", "third")] == ["node-00002"] * 3
        claim = cluster.api.get(CLAIMS, "default", generated["resourceClaimName"])
        assert sorted(user["name"] for user in claim["status"]["reservedFor"]) == ["first", "second", "third"]
        assert cluster.allocated() == {generated["resourceClaimName"]: ["only"]}


async def test_a_device_that_comes_free_goes_to_the_pod_that_waits() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "only")
        cluster.pod("first", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        cluster.pod("second", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        assert (cluster.node_of("first"), cluster.node_of("second")) == ("node-00001", "")
        cluster.api.delete("pods", "default", "first", {"gracePeriodSeconds": 0})
        await cluster.after(30)
        assert cluster.node_of("second") == "node-00001"


async def test_an_idle_claim_that_is_in_the_way_is_freed() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "here")
        cluster.publish("node-00002", "there")
        cluster.claim("mine")
        cluster.pod("first", [{"name": "d", "resourceClaimName": "mine"}])
        await cluster.after(5)
        home = cluster.node_of("first")
        cluster.api.delete("pods", "default", "first", {"gracePeriodSeconds": 0})
        node = cluster.api.get("nodes", "", home)
        cluster.api.update("nodes", "", home, {**node, "spec": {**node.get("spec", {}), "unschedulable": True}})
        await cluster.after(5)
        cluster.pod("second", [{"name": "d", "resourceClaimName": "mine"}])
        await cluster.after(30)
        other = {"node-00001": "node-00002", "node-00002": "node-00001"}[home]
        assert cluster.node_of("second") == other


async def test_an_extended_resource_is_served_by_devices() -> None:
    async with live() as cluster:
        cluster.publish("node-00002", "a", "b")
        cluster.pod("p", [], **{"deviceclass.resource.kubernetes.io/gpu": "2"})
        await cluster.after(10)
        assert cluster.node_of("p") == "node-00002"
        status = cluster.api.get("pods", "default", "p")["status"]["extendedResourceClaimStatus"]
        assert cluster.allocated() == {status["resourceClaimName"]: ["a", "b"]}
        mapping = {"containerName": "c", "resourceName": "deviceclass.resource.kubernetes.io/gpu"}
        assert status["requestMappings"] == [{**mapping, "requestName": "container-0-request-0"}]
