"""Schedulers with leader election on one sandbox, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.calls.fenced_writer import FencedWriter
from pilotage.kube.client import KubeClient
from pilotage.kube.election import Election, ElectionTiming, LeaseName
from pilotage.kube.leader_election import LeaderElector
from pilotage.kube.transport import Response, Transport, TransportError
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.serve.service import SchedulerService
from pilotage.testing import VirtualClock


class Wire:
    """A transport with a memory of its bindings; it can be cut, and bindings can be slow."""

    def __init__(self, transport: Transport, clock: VirtualClock) -> None:
        self._transport = transport
        self._clock = clock
        self.is_cut = False
        self.lags = False
        """Watches bring nothing."""
        self.refuses_lists = False
        self.binding_seconds = 0.0
        self.status_seconds = 0.0
        self.event_seconds = 0.0
        self.bound: Counter[str] = Counter()
        self.refused: Counter[int] = Counter()

    async def request(self, method: str, path: str, **options: Any) -> Response:
        self._check()
        if self.refuses_lists and "limit" in (options.get("query") or {}):
            raise TransportError("no list today", sent=False)
        if path.endswith("/binding") and self.binding_seconds:
            await self._clock.sleep(self.binding_seconds)
        if path.endswith("/status") and self.status_seconds:
            await self._clock.sleep(self.status_seconds)
        if path.endswith("/events") and self.event_seconds:
            await self._clock.sleep(self.event_seconds)
        answer = await self._transport.request(method, path, **options)
        if path.endswith("/binding"):
            if answer.status < 300:
                self.bound[path] += 1
            else:
                self.refused[answer.status] += 1
        return answer

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(path, query)

    @asynccontextmanager
    async def _stream(self, path: str, query: Mapping[str, str] | None) -> AsyncIterator[AsyncIterator[bytes]]:
        self._check()
        async with self._transport.stream(path, query) as chunks:
            yield self._in_time(chunks)

    async def _in_time(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            while self.lags:
                await self._clock.sleep(0.5)
            yield chunk

    async def close(self) -> None:
        await self._transport.close()

    def _check(self) -> None:
        if self.is_cut:
            raise TransportError("cut", sent=False)


class Replica:
    """One scheduler process as `pilotage run` puts it together."""

    def __init__(
        self, cluster: EmbeddedCluster, clock: VirtualClock, identity: str, *, delays_cache: bool = False
    ) -> None:
        self.wire = Wire(cluster.transport(), clock)
        client = KubeClient(self.wire)
        election = Election(identity, LeaseName(), ElectionTiming())
        self.elector = LeaderElector(client, election, clock, seeded(len(identity)))
        writer = FencedWriter(client, lambda: self.elector.is_leading)
        self.process = SchedulerProcess(client, clock, seeded(7), SchedulerOptions(), writer)
        self.service = SchedulerService(self.process, self.elector, delays_cache=delays_cache)
        self.error: Exception | None = None

    async def run(self) -> None:
        """An end by error is kept: the other replica must live on."""
        try:
            await self.service.run()
        except Exception as error:
            self.error = error


class World:
    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock, tasks: asyncio.TaskGroup) -> None:
        self.cluster = cluster
        self.clock = clock
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []
        self._client = KubeClient(cluster.transport())

    async def start(self, identity: str, *, delays_cache: bool = False) -> tuple[Replica, asyncio.Task[None]]:
        replica = Replica(self.cluster, self.clock, identity, delays_cache=delays_cache)
        task = self._tasks.create_task(replica.run(), name=identity)
        self._running.append(task)
        await self.clock.advance(0.5)
        return replica, task

    async def create_pods(self, *names: str, cpu: str = "10m", limits: Mapping[str, str] | None = None) -> None:
        for name in names:
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}, "limits": limits or {}}}
            body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}
            await self.cluster.transport().request(
                "POST", "/api/v1/namespaces/default/pods", body=msgspec.json.encode(body)
            )

    async def objects(self, path: str) -> list[dict[str, Any]]:
        answer = await self.cluster.transport().request("GET", path)
        items: list[dict[str, Any]] = msgspec.json.decode(answer.body)["items"]
        return items

    async def nodes_of_pods(self) -> dict[str, str]:
        pods = await self.objects("/api/v1/namespaces/default/pods")
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}

    async def unbound(self) -> list[str]:
        return [name for name, node in (await self.nodes_of_pods()).items() if not node]

    def end(self) -> None:
        for task in self._running:
            task.cancel()


@asynccontextmanager
async def world(nodes: int = 3) -> AsyncIterator[World]:
    clock = VirtualClock()
    async with asyncio.TaskGroup() as tasks:
        entering = EmbeddedCluster.running(EmbeddedOptions(nodes=nodes, port=None), clock, seeded(1))
        async with entering as cluster:
            made = World(cluster, clock, tasks)
            yield made
            made.end()
            await clock.settle()
