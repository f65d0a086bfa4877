"""A scheduler that starts into the middle of things, and one whose clock is set: on a sandbox, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.config.feature_gates import FeatureGates
from pilotage.kube.client import KubeClient
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.storage.records import Key
from pilotage.testing import VirtualClock

Json = dict[str, Any]


class SetClock(VirtualClock):
    """A clock whose time of day can be set, forwards and backwards."""

    set_by = 0.0

    def time(self) -> float:
        return super().time() + self.set_by


class World:
    def __init__(self, cluster: EmbeddedCluster, clock: SetClock, tasks: asyncio.TaskGroup) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.clock = clock
        self._tasks = tasks

    @asynccontextmanager
    async def scheduler(self, options: SchedulerOptions | None = None) -> AsyncIterator[SchedulerProcess]:
        """Runs until the block ends, which is as abrupt as a kill."""
        client = KubeClient(self.cluster.transport())
        process = SchedulerProcess(client, self.clock, seeded(2), options or SchedulerOptions())
        running = self._tasks.create_task(process.run(), name="scheduler")
        await self.clock.advance(1.0)
        yield process
        process.scheduler.cluster.check()
        process.scheduler.queue.check()
        running.cancel()
        await self.clock.settle()

    def pod(self, name: str, cpu: str = "100m", **spec: Any) -> Json:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        created: Json = self.api.create(
            "pods", "default", {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        )
        return created

    def add_node(self, name: str) -> None:
        status = {"allocatable": {"cpu": "8", "pods": "9"}}
        self.api.create("nodes", "", {"metadata": {"name": name}, "status": status})

    def set_status(self, name: str, **status: Any) -> None:
        pod = self.api.get("pods", "default", name)
        changed = {**pod, "status": {**pod.get("status", {}), **status}}
        self.api.update("pods", "default", name, changed, subresource="status")

    def node_of(self, name: str) -> str:
        node: str = self.api.get("pods", "default", name)["spec"].get("nodeName", "")
        return node


@asynccontextmanager
async def world(nodes: int = 2) -> AsyncIterator[World]:
    clock = SetClock()
    async with asyncio.TaskGroup() as tasks:
        options = EmbeddedOptions(nodes=nodes, port=None, is_alive=False)
        async with EmbeddedCluster.running(options, clock, seeded(1)) as cluster:
            yield World(cluster, clock, tasks)


async def test_place_that_was_made_by_a_scheduler_that_died_is_still_kept() -> None:
    """It had evicted others for the pod and was killed: another pod must not take the room."""
    async with world(nodes=1) as cluster:
        cluster.api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "high"}, "value": 1000})
        cluster.pod("nominated", cpu="3", priorityClassName="high")
        cluster.set_status("nominated", nominatedNodeName="node-00001")
        cluster.pod("held", cpu="3", schedulingGates=[{"name": "x"}], priorityClassName="high")
        cluster.pod("greedy", cpu="3")
        async with cluster.scheduler():
            await cluster.clock.advance(5.0)
            assert (cluster.node_of("nominated"), cluster.node_of("greedy")) == ("node-00001", "")


async def test_claims_that_were_reserved_for_an_unbound_pod_are_used() -> None:
    """Killed between the reservation of a device and the binding: the pod follows its device."""
    async with world() as cluster:
        cluster.api.create("deviceclasses.resource.k8s.io", "", {"metadata": {"name": "gpu"}, "spec": {}})
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        for node in ("node-00001", "node-00002"):
            spec = {"driver": "d.example.com", "pool": {**pool, "name": node}, "nodeName": node}
            slice_ = {"metadata": {"name": node}, "spec": {**spec, "devices": [{"name": "only"}]}}
            cluster.api.create("resourceslices.resource.k8s.io", "", slice_)
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        claim = {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": requests}}}
        created = cluster.api.create("resourceclaims.resource.k8s.io", "default", claim)
        made = cluster.pod("p", resourceClaims=[{"name": "d", "resourceClaimName": "mine"}])
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-00002"]}]}]
        result = {"request": "r", "driver": "d.example.com", "pool": "node-00002", "device": "only"}
        status = {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}],
        }
        cluster.api.update(
            "resourceclaims.resource.k8s.io", "default", "mine", {**created, "status": status}, subresource="status"
        )
        async with cluster.scheduler():
            await cluster.clock.advance(5.0)
            assert cluster.node_of("p") == "node-00002"


async def test_pods_that_others_placed_count_and_pods_of_others_are_left_alone() -> None:
    async with world(nodes=1) as cluster:
        for number in range(3):
            cluster.pod(f"static-{number}", cpu="1", nodeName="node-00001")
        cluster.pod("ghost", cpu="1", nodeName="a-node-that-is-gone")
        cluster.pod("foreign", schedulerName="another-scheduler")
        cluster.pod("fits", cpu="900m")
        cluster.pod("too-much", cpu="900m")
        async with cluster.scheduler() as process:
            await cluster.clock.advance(5.0)
            assert cluster.node_of("foreign") == ""
            assert sorted([cluster.node_of("fits"), cluster.node_of("too-much")]) == ["", "node-00001"]
            assert len(process.scheduler.cluster.objects("Pod")) == 7


async def test_killed_in_the_middle_of_many_bindings_the_next_one_binds_the_rest_once() -> None:
    async with world() as cluster:
        for number in range(60):
            cluster.pod(f"p{number}", cpu="10m")
        async with cluster.scheduler():
            pass
        for number in range(60, 90):
            cluster.pod(f"p{number}", cpu="10m")
        async with cluster.scheduler():
            await cluster.clock.advance(5.0)
        assert all(cluster.node_of(f"p{number}") for number in range(90))


async def test_what_does_not_decode_is_skipped_and_reported_once_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as cluster:
        cluster.api.create("nodes", "", {"metadata": {"name": "odd"}, "status": {"allocatable": {"cpu": "4"}}})
        stored = cluster.api.get("nodes", "", "odd")
        with caplog.at_level(logging.WARNING):
            async with cluster.scheduler() as process:
                nodes = next(one for one in process.reflectors if one.kind.plural == "nodes")
                _write_nonsense(cluster, stored)
                cluster.pod("p")
                await cluster.clock.advance(5.0)
                _write_nonsense(cluster, stored)
                await cluster.clock.advance(5.0)
                assert cluster.node_of("p")
                counted = process.scheduler.metrics.skipped_objects_total.values()
                assert counted == {("Node", "decode"): nodes.undecodable.skipped_total}
                assert counted["Node", "decode"] >= 2
        told = [record for record in caplog.records if "is skipped (decode)" in record.getMessage()]
        assert len(told) == 1 and "odd" in told[0].getMessage()


def _write_nonsense(cluster: World, node: Json) -> None:
    """Past validation: as a newer API server might store it."""
    cluster.api.store.update(Key("nodes", "", "odd"), {**node, "spec": {"taints": "none at all"}})


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0], ids=["back by a day", "ahead by a day"])
async def test_clock_that_is_set_neither_delays_nor_wakes_pods(jump: float) -> None:
    async with world(nodes=1) as cluster, cluster.scheduler() as process:
        cluster.pod("big", cpu="5")
        await cluster.clock.advance(1.0)
        attempts = process.scheduler.metrics.schedule_attempts_total.total()
        assert attempts == 1
        cluster.clock.set_by += jump
        await cluster.clock.advance(100.0)
        assert process.scheduler.metrics.schedule_attempts_total.total() == attempts, "nothing has happened to it"
        cluster.api.create(
            "nodes", "", {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}
        )
        await cluster.clock.advance(3.0)
        assert cluster.node_of("big") == "n"


async def test_clock_that_is_set_back_does_not_prolong_a_backoff() -> None:
    waits = SchedulerOptions(feature_gates=FeatureGates({"SchedulerPopFromBackoffQ": False}))
    async with world(nodes=1) as cluster, cluster.scheduler(waits):
        cluster.pod("big", cpu="5")
        await cluster.clock.advance(0.2)
        cluster.api.create(
            "nodes", "", {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}
        )
        cluster.clock.set_by -= 3600.0
        await cluster.clock.advance(4.0)
        assert cluster.node_of("big") == "n"
