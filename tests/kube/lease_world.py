"""Candidates for one lease on an API server in memory, in virtual time, with a network that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from pilotage.kube.client import KubeClient
from pilotage.kube.election import Election, ElectionTiming, LeaseName
from pilotage.kube.leader_election import LeaderElector
from pilotage.kube.transport import Response, StreamRefused, Transport, TransportError
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.inprocess import InProcessTransport
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.storage.store import Store
from pilotage.testing import VirtualClock

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


class Cable:
    """A transport that can be cut: requests fail, or hang until the cable is mended."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.is_cut = False
        self.hangs = False
        self.loses_answers = False
        """To what is written."""
        self.rejection: Response | None = None
        self.stream_refusal: Response | None = None
        self.requests: list[tuple[str, str]] = []

    async def request(self, method: str, path: str, **options: Any) -> Response:
        self.requests.append((method, path))
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.is_cut:
            raise TransportError("cut", sent=False)
        if self.rejection is not None:
            return self.rejection
        answer = await self._transport.request(method, path, **options)
        if self.loses_answers and method != "GET":
            await asyncio.get_running_loop().create_future()
        return answer

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        if self.stream_refusal is not None:
            raise StreamRefused(self.stream_refusal)
        async with self._transport.stream(path, query) as chunks:
            yield chunks

    async def close(self) -> None:
        await self._transport.close()


class LeaseWorld:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = Api(Store(history=1000), clock=self.clock, rng=seeded(1))
        self.server = ApiServer(self.api, token=None, clock=self.clock)
        self.plain = InProcessTransport(self.server)

    def candidate(self, identity: str, timing: ElectionTiming | None = None) -> tuple[LeaderElector, Cable]:
        cable = Cable(InProcessTransport(self.server))
        election = Election(identity, LeaseName(), timing or ElectionTiming())
        return LeaderElector(KubeClient(cable), election, self.clock, seeded(len(identity))), cable

    async def lease(self) -> dict[str, Any]:
        answer = await self.plain.request("GET", LEASE_PATH)
        document: dict[str, Any] = msgspec.json.decode(answer.body)
        return document

    async def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = (await self.lease())["spec"]
        return spec
