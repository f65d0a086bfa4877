"""The whole scheduler against a sandbox that misbehaves, in virtual time: whatever goes wrong, in the end all is right.

Two nodes with room for eight pods; twelve ordinary pods, two that fit on no node, and three important ones, which
must take the place of others. In the end

- every place is taken, the important pods have theirs, and no node holds more than it can,
- no pod was bound twice, none was lost, and none is stuck between queue and node,
- the status of every pod says what is so, and what the scheduler shows is what the server has.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.clock import Clock, SystemClock
from pilotage.config.feature_gates import FeatureGates
from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import Transport
from pilotage.queue.sub_queues import SubQueue
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.faults import parse_fault
from pilotage.sandbox.storage.records import Change
from pilotage.testing import PodBuilder, VirtualClock, node, pod

ROOM = 8
ORDINARY = [pod(f"ordinary-{number}").requests(cpu="1") for number in range(12)]
TOO_BIG = [pod(f"big-{number}").requests(cpu="40") for number in range(2)]
IMPORTANT = [pod(f"important-{n}").requests(cpu="1").spec(priorityClassName="important") for n in range(3)]


class World:
    """A sandbox, a scheduler, and a witness of every binding."""

    def __init__(self, cluster: EmbeddedCluster, transport: Transport, clock: Clock, gates: dict[str, bool]) -> None:
        self.cluster = cluster
        self.clock = clock
        self.bindings: Counter[str] = Counter()
        self._nodes: dict[str, str] = {}
        options = SchedulerOptions(feature_gates=FeatureGates(gates))
        self.process = SchedulerProcess(KubeClient(transport), clock, random.Random(1), options)
        self.witness(cluster)

    def witness(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        cluster.api.store.subscribe("pods", self._note)

    def _note(self, change: Change) -> None:
        obj = change.record.object()
        uid, node_name = obj["metadata"]["uid"], obj["spec"].get("nodeName", "")
        if change.type != "DELETED" and node_name and self._nodes.get(uid) != node_name:
            self.bindings[uid] += 1
            self._nodes[uid] = node_name

    def create(self, *builders: PodBuilder) -> None:
        for builder in builders:
            made = builder.json()
            made["spec"]["terminationGracePeriodSeconds"] = 0
            self.cluster.api.create("pods", "default", made)

    def pods(self) -> dict[str, dict[str, Any]]:
        return {obj["metadata"]["name"]: obj for obj in self.cluster.api.list("pods", "default")}

    def check(self) -> None:
        pods = self.pods()
        bound = {name: obj["spec"]["nodeName"] for name, obj in pods.items() if "nodeName" in obj["spec"]}
        assert len(bound) == ROOM, "every place is taken"
        assert all(count <= ROOM // 2 for count in Counter(bound.values()).values()), "no node holds more than it can"
        assert {one.build().name for one in IMPORTANT} <= bound.keys()
        assert set(self.bindings.values()) == {1}, "no pod was bound twice"
        assert {one.build().name for one in TOO_BIG} <= pods.keys() - bound.keys()
        for name, obj in pods.items():
            assert scheduled(obj) == (("True", "") if name in bound else ("False", "Unschedulable")), name
            assert "nominatedNodeName" not in obj["status"], name
        self._check_memory(pods, bound)

    def _check_memory(self, pods: dict[str, dict[str, Any]], bound: dict[str, str]) -> None:
        scheduler = self.process.scheduler
        assert scheduler.dispatcher.is_idle and scheduler.queue.size(SubQueue.IN_FLIGHT) == 0, "nothing is stuck"
        waiting = {entry.pod.name for entry in scheduler.queue.entries()}
        assert waiting == pods.keys() - bound.keys(), "nothing is lost"
        for obj in scheduler.cluster.objects("Pod").values():
            assert obj.resource_version == pods[obj.name]["metadata"]["resourceVersion"]
            assert scheduler.cluster.received("Pod", obj.key) is obj, "nothing is laid over the last word"
            assert (obj.status.condition("PodScheduled") or obj).status == scheduled(pods[obj.name])[0]
        scheduler.cluster.check()
        scheduler.queue.check()
        scheduler.dispatcher.queue.check()


def scheduled(obj: dict[str, Any]) -> tuple[str, str]:
    found = [c for c in obj.get("status", {}).get("conditions", ()) if c["type"] == "PodScheduled"]
    return (found[0]["status"], found[0].get("reason", "")) if found else ("", "")


def options(*faults: str) -> EmbeddedOptions:
    return EmbeddedOptions(
        nodes=0, port=None, is_alive=False, faults=[parse_fault(text) for text in faults], fault_seed=7
    )


@asynccontextmanager
async def running(*faults: str, gates: dict[str, bool] | None = None) -> AsyncIterator[tuple[World, VirtualClock]]:
    clock = VirtualClock()
    async with EmbeddedCluster.running(options(*faults), clock, seeded(1)) as cluster:
        furnish(cluster)
        world = World(cluster, cluster.transport(), clock, gates or {})
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(world.process.run())
            yield world, clock
            task.cancel()


def furnish(cluster: EmbeddedCluster) -> None:
    for name in ("a", "b"):
        cluster.api.create("nodes", "", node(name).cpu(str(ROOM // 2)).json())
    cluster.api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "important"}, "value": 1000})


async def live_through(world: World, clock: VirtualClock) -> None:
    await clock.advance(1)
    for number, one in enumerate((*TOO_BIG, *ORDINARY)):
        world.create(one)
        if number % 3 == 0:
            await clock.advance(0.05)
    await clock.advance(10)
    for one in IMPORTANT:
        world.create(one)
        await clock.advance(0.5)
    await clock.advance(600)


FAULTS = [
    "409,resource=pods/status,p=0.4",
    "409,resource=pods/binding,p=0.3",
    "429=1s,p=0.4",
    "429=5s,resource=pods/binding,times=3",
    "500,p=0.4",
    "503,p=0.4",
    "reset-before,p=0.4",
    "reset-after,p=0.4",
    "reset-after,resource=pods/binding,p=0.9,times=20",
    "slow=3s,p=0.5",
    "latency=2s,p=0.5",
    "500,from=1s,for=20s",
]


@pytest.mark.parametrize("fault", FAULTS)
async def test_whatever_goes_wrong_all_is_right_in_the_end(fault: str) -> None:
    async with running(fault) as (world, clock):
        await live_through(world, clock)
        assert world.cluster.faults is not None and sum(world.cluster.faults.hits) > 0, "there were faults"
        world.check()


async def test_everything_may_go_wrong_at_once() -> None:
    faults = (
        "409,p=0.1,resource=pods/status",
        "429=1s,p=0.1",
        "500,p=0.1",
        "reset-before,p=0.1",
        "reset-after,p=0.1",
        "slow=1s,p=0.2",
    )
    async with running(*faults) as (world, clock):
        await live_through(world, clock)
        world.check()


@pytest.mark.parametrize("gates", [{"SchedulerAsyncAPICalls": False}, {"SchedulerAsyncPreemption": False}], ids=str)
@pytest.mark.parametrize("fault", ["500,p=0.2", "reset-after,p=0.3", "slow=1s,p=0.3"])
async def test_with_the_gates_off_too(fault: str, gates: dict[str, bool]) -> None:
    async with running(fault, gates=gates) as (world, clock):
        await live_through(world, clock)
        world.check()


@pytest.mark.parametrize("down_at", [1.02, 1.2, 12.0])
async def test_the_server_may_go_away_and_come_back(down_at: float) -> None:
    """All requests fail and all watches end for ten seconds, in the middle of bindings, patches or preemption."""
    gone = [f"reset-before,verb={verb},from={down_at}s,for=10s" for verb in ("get", "list", "watch")]
    async with running(f"reset-before,from={down_at}s,for=10s", *gone) as (world, clock):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cut_watches(world, clock, down_at))
            await live_through(world, clock)
        world.check()


async def cut_watches(world: World, clock: VirtualClock, at: float) -> None:
    await clock.sleep(at)
    for watch in list(world.cluster.server.watches._watches):
        watch.close()


@pytest.mark.e2e
async def test_a_server_that_restarts_over_http_finds_everything_as_it_left_it(tmp_path: Path) -> None:
    """Real sockets and a data directory: the server is stopped in the middle and started again on the same port."""
    clock, rng = SystemClock(), seeded(1)
    config = tmp_path / "kubeconfig"

    def serving(port: int) -> EmbeddedOptions:
        return EmbeddedOptions(
            nodes=0, port=port, is_alive=False, data_dir=tmp_path / "data", token="t" * 32, kubeconfig=config, tls=False
        )

    async with asyncio.TaskGroup() as tasks:
        async with EmbeddedCluster.running(serving(0), clock, rng) as cluster:
            furnish(cluster)
            port = int(str(cluster.url).rpartition(":")[2])
            transport = HttpTransport(load_connection(str(config), None, clock=clock))
            world = World(cluster, transport, clock, {})
            task = tasks.create_task(world.process.run())
            await clock.sleep(0.5)
            world.create(*TOO_BIG, *ORDINARY)
            await clock.sleep(0.02)
        await clock.sleep(1.0)
        async with EmbeddedCluster.running(serving(port), clock, rng) as cluster:
            world.witness(cluster)
            await clock.sleep(2.0)
            world.create(*IMPORTANT)
            for _ in range(300):
                await clock.sleep(0.1)
                try:
                    world.check()
                    break
                except AssertionError:
                    continue
            world.check()
            task.cancel()
    await transport.close()
