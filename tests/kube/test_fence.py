"""A write that had to wait for its connection is sent only if it may still be sent then."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from pilotage.calls.fenced_writer import NotLeading, fence
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.tls import TlsSettings

from .loopback import served


class SlowServer:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.has_been_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        self.has_been_asked.set()
        await self.may_answer.wait()
        return web.Response()


async def test_a_write_that_waits_in_the_pool_until_the_lease_is_over_is_not_sent() -> None:
    server, leads = SlowServer(), [True]
    async with served(server.handle) as url:
        transport = HttpTransport(
            Connection(url, TlsSettings(), StaticCredentials(), "test"),
            HttpSettings(connections=1),
            fence=fence(lambda: leads[0]),
        )
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(transport.request("POST", "/first"))
            await server.has_been_asked.wait()
            second = tasks.create_task(_refused(transport, "POST", "/second"))
            reading = tasks.create_task(transport.request("GET", "/third"))
            await asyncio.sleep(0)
            leads[0] = False
            server.may_answer.set()
        assert first.result().status == 200 and second.result() and reading.result().status == 200
        await transport.close()
    assert server.asked == ["POST /first", "GET /third"]


async def _refused(transport: HttpTransport, method: str, path: str) -> bool:
    with pytest.raises(NotLeading):
        await transport.request(method, path)
    return True
