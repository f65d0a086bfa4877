"""A scheduler that ends in the middle of a gang's bindings, and the next one on the same API server.

What is bound counts: the rest is placed beside it, or stays pending if it does not fit any more. Nothing that the first
one had only in mind is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec
import pytest

from pilotage.assembly import SchedulerProcess, options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.kube.client import KubeClient
from pilotage.kube.transport import Response, Transport, TransportError
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock

Json = dict[str, Any]
POD_GROUPS = "podgroups.scheduling.k8s.io"


class CutOff:
    """A transport that fails after so many bindings: before the next one is done, or after it."""

    def __init__(self, inner: Transport, bindings: int, *, is_done: bool) -> None:
        self._inner = inner
        self._left = bindings
        self._is_done = is_done
        self.is_cut = asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if self.is_cut.is_set():
            raise TransportError("the process is gone", sent=False)
        if not path.endswith("/binding"):
            return await self._inner.request(method, path, **options)
        self._left -= 1
        if self._left >= 0:
            return await self._inner.request(method, path, **options)
        self.is_cut.set()
        if self._is_done:
            await self._inner.request(method, path, **options)
        raise TransportError("connection reset", sent=True)

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(path, query)

    async def close(self) -> None:
        await self._inner.close()


class Recovery:
    """One API server, and one scheduler process after the other."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self._options = options_from_configuration(
            SchedulerConfiguration(), gates=FeatureGates({"GenericWorkload": True})
        )

    @asynccontextmanager
    async def process(self, transport: Transport | None = None) -> AsyncIterator[SchedulerProcess]:
        client = KubeClient(transport or self.cluster.transport())
        process = SchedulerProcess(client, self.clock, seeded(1), self._options)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run())
            yield process
            running.cancel()

    def add_node(self, name: str, cpu: int) -> None:
        amounts = {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}
        self.cluster.api.create(
            "nodes", "", {"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}}
        )

    def add_gang(self, name: str, least: int, members: int) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
        self.cluster.api.create(POD_GROUPS, "default", {"metadata": {"name": name}, "spec": spec})
        for number in range(members):
            self.add_pod(f"{name}-{number}", schedulingGroup={"podGroupName": name})

    def add_pod(self, name: str, **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        body = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        self.cluster.api.create("pods", "default", msgspec.json.decode(msgspec.json.encode(body)))

    def bound(self) -> list[str]:
        pods = [record.object() for record in self.cluster.api.store.list("pods")]
        return sorted(pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName"))

    def condition(self, name: str) -> Json:
        group = self.cluster.api.get(POD_GROUPS, "default", name)
        (found,) = (group.get("status") or {}).get("conditions") or [{}]
        return dict(found)


@asynccontextmanager
async def recovery() -> AsyncIterator[Recovery]:
    clock = VirtualClock()
    async with EmbeddedCluster.running(
        EmbeddedOptions(nodes=0, port=None, is_alive=False), clock, seeded(1)
    ) as cluster:
        yield Recovery(cluster, clock)


@pytest.mark.parametrize("bindings", [0, 1, 2])
@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done without an answer"])
async def test_what_is_bound_counts_and_the_rest_is_placed(bindings: int, is_done: bool) -> None:
    async with recovery() as it:
        it.add_node("n1", cpu=3)
        it.add_gang("g", least=3, members=3)
        wire = CutOff(it.cluster.transport(), bindings, is_done=is_done)
        async with it.process(wire):
            await wire.is_cut.wait()
        assert len(it.bound()) == bindings + is_done
        async with it.process() as process:
            await it.clock.advance(30)
            assert it.bound() == ["g-0", "g-1", "g-2"]
            assert process.scheduler.cluster.assumed_count == 0
            assert not list(process.scheduler.queue.tickets())
        assert it.condition("g")["status"] == "True"


async def test_a_gang_of_which_nothing_was_bound_has_nothing_when_its_room_is_taken() -> None:
    async with recovery() as it:
        it.add_node("n1", cpu=3)
        it.add_gang("g", least=3, members=3)
        wire = CutOff(it.cluster.transport(), 0, is_done=False)
        async with it.process(wire):
            await wire.is_cut.wait()
        it.add_pod("other", nodeName="n1")
        async with it.process() as process:
            await it.clock.advance(60)
            assert it.bound() == ["other"]
            assert process.scheduler.cluster.assumed_count == 0


async def test_a_gang_that_was_partly_bound_waits_for_room_for_the_rest() -> None:
    """It has started: what is bound stays, nothing more is taken until the minimum is reached with it."""
    async with recovery() as it:
        it.add_node("n1", cpu=4)
        it.add_gang("g", least=4, members=4)
        wire = CutOff(it.cluster.transport(), 1, is_done=False)
        async with it.process(wire):
            await wire.is_cut.wait()
        it.add_pod("other", nodeName="n1")
        async with it.process() as process:
            await it.clock.advance(60)
            (first, other) = it.bound()
            assert (first[:2], other) == ("g-", "other")
            assert process.scheduler.cluster.assumed_count == 0, "two of the others would fit, and take nothing"
            it.add_node("n2", cpu=1)
            await it.clock.advance(60)
            assert it.bound() == ["g-0", "g-1", "g-2", "g-3", "other"]


async def test_the_rest_of_a_gang_goes_on_without_a_member_that_is_deleted_meanwhile() -> None:
    async with recovery() as it:
        it.add_node("n1", cpu=3)
        it.add_gang("g", least=3, members=3)
        wire = CutOff(it.cluster.transport(), 1, is_done=False)
        async with it.process(wire):
            await wire.is_cut.wait()
        (first,) = it.bound()
        gone = next(name for name in ("g-0", "g-1", "g-2") if name != first)
        it.cluster.api.delete("pods", "default", gone, {"gracePeriodSeconds": 0})
        async with it.process():
            await it.clock.advance(60)
            assert it.bound() == [first], "two are too few"
            it.add_pod("replacement", schedulingGroup={"podGroupName": "g"})
            await it.clock.advance(60)
            assert len(it.bound()) == 3
