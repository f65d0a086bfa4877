"""Requests that go out in one piece: each has its own answer, and what has none may have happened."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from pilotage.calls.fenced_writer import NotLeading, fence
from pilotage.kube.client import KubeClient
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.source import WatchedFile
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import Response, TransportError, WireRequest
from pilotage.model import KINDS
from tests.passing_transport import PassingTransport

from .loopback import served, transport_to, unused_url
from .manual_clock import ManualClock

THREE = [WireRequest("POST", f"/{name}", b'{"of": "%s"}' % name.encode()) for name in ("a", "b", "c")]


async def test_an_http_server_answers_each_in_turn_on_one_connection() -> None:
    seen: list[tuple[str, bytes, object]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        peer = request.transport and request.transport.get_extra_info("peername")
        seen.append((request.path, await request.read(), peer))
        return web.Response(status=409 if request.path == "/b" else 201, text=f"answer to {request.path}")

    async with served(handler) as url, transport_to(url) as it:
        answers = await it.send_all(THREE)
        assert [(one.status, one.body) for one in answers if isinstance(one, Response)] == [
            (201, b"answer to /a"),
            (409, b"answer to /b"),
            (201, b"answer to /c"),
        ]
        assert (await it.request("GET", "/a")).status == 201, "the connection serves on"
    assert [path for path, _, _ in seen] == ["/a", "/b", "/c", "/a"]
    assert [body for _, body, _ in seen[:3]] == [one.body for one in THREE]
    assert len({peer for _, _, peer in seen}) == 1


async def test_what_is_not_answered_any_more_may_have_happened() -> None:
    arrived: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read(1 << 16))
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 201 Crea")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, transport_to(f"http://127.0.0.1:{port}") as it:
        first, *others = await it.send_all(THREE)
    assert arrived[0].count(b"POST /") == 3, "they are one piece"
    assert isinstance(first, Response) and first.status == 201
    assert [one.sent for one in others if isinstance(one, TransportError)] == [True, True]


async def test_a_server_that_says_nothing_is_not_waited_for_longer_than_for_one() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = HttpSettings(request_seconds=0.05)
    async with server, transport_to(f"http://127.0.0.1:{port}", settings=settings) as it:
        answers = await it.send_all(THREE)
    assert [str(one).partition(" did ")[2] for one in answers] == ["not answer in time"] * 3


async def test_without_a_connection_nothing_was_sent() -> None:
    async with transport_to(await unused_url()) as it:
        answers = await it.send_all(THREE)
    assert [one.sent for one in answers if isinstance(one, TransportError)] == [False] * 3


async def test_those_that_came_with_an_old_token_are_sent_once_more(tmp_path: Path) -> None:
    attempts: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        attempts.append(f"{request.path} {request.headers['Authorization']}")
        is_known = request.path == "/b" or request.headers["Authorization"] == "Bearer new"
        return web.Response(status=201 if is_known else 401, text=request.path)

    token = tmp_path / "token"
    token.write_text("old")
    credentials = StaticCredentials(token_file=WatchedFile(token, "tokenFile", ManualClock()))
    async with served(handler) as url, transport_to(url, credentials=credentials) as it:
        assert [one.status for one in await it.send_all(THREE) if isinstance(one, Response)] == [401, 201, 401]
        token.write_text("new")
        attempts.clear()
        answers = await it.send_all(THREE)
    assert [(one.status, one.body) for one in answers if isinstance(one, Response)] == [
        (201, b"/a"),
        (201, b"/b"),
        (201, b"/c"),
    ]
    assert attempts == ["/a Bearer old", "/b Bearer old", "/c Bearer old", "/a Bearer new", "/c Bearer new"]


async def test_who_does_not_lead_sends_none_of_them() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        raise AssertionError("nothing is sent")

    async with served(handler) as url:
        connection = Connection(url, TlsSettings(), StaticCredentials(), "test")
        transport = HttpTransport(connection, fence=fence(lambda: False))
        with pytest.raises(NotLeading):
            await transport.send_all(THREE)
        await transport.close()


async def test_a_client_says_what_went_wrong_with_each() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        reason = (await request.json())["of"]
        if reason == "b":
            return web.json_response({"kind": "Status", "reason": "Forbidden", "message": "not b"}, status=403)
        return web.json_response({}, status=201)

    async with served(handler) as url, transport_to(url) as it:
        client = KubeClient(it)
        assert client.creates_together and not KubeClient(PassingTransport(it)).creates_together
        first, second, third = await client.create_all([(KINDS["events"], "team", one.body) for one in THREE])
    assert first is None and third is None
    assert isinstance(second, ApiStatusError) and (second.code, second.message) == (403, "not b")
