"""The server on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from pilotage.clock import SystemClock
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.asgi import NotLoopback, PortInUse, serve
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.tls import make_tls
from pilotage.sandbox.storage.store import Store
from tests.sandbox.api_world import config_map

MAPS = "/api/v1/namespaces/default/configmaps"
TOKEN = {"authorization": "Bearer secret"}


@pytest.fixture
def server() -> ApiServer:
    clock = SystemClock()
    return ApiServer(Api(Store(history=1000), clock=clock, rng=seeded(1)), token="secret", clock=clock)


async def test_requests_are_answered_over_http(server: ApiServer) -> None:
    async with serve(server) as serving, aiohttp.ClientSession(serving.url, headers=TOKEN) as client:
        assert serving.url == f"http://127.0.0.1:{serving.port}"
        async with client.post(MAPS, json=config_map("a", b="c")) as answer:
            assert (answer.status, answer.content_type) == (201, "application/json")
            created = await answer.json()
        async with client.get(f"{MAPS}/a") as answer:
            assert await answer.json() == created
        async with client.get(MAPS, params={"labelSelector": "x in (a, b)"}) as answer:
            assert (await answer.json())["items"] == []


async def test_the_token_is_asked_for(server: ApiServer) -> None:
    async with serve(server) as serving, aiohttp.ClientSession(serving.url) as client:
        for path, status in (
            (MAPS, 401),
            (f"/t/wrong{MAPS}", 401),
            (f"/t/secret{MAPS}", 200),
            ("/t/secret", 200),
            ("/healthz", 200),
        ):
            async with client.get(path) as answer:
                assert answer.status == status, path


async def test_a_watch_streams_until_its_client_leaves(server: ApiServer) -> None:
    async with serve(server) as serving, aiohttp.ClientSession(serving.url, headers=TOKEN) as client:
        async with client.get(MAPS, params={"watch": "1"}) as watch:
            assert watch.status == 200
            server.api.create("configmaps", "default", config_map("a"))
            event = json.loads(await watch.content.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
            assert len(server.watches) == 1
        async with asyncio.timeout(60):
            while len(server.watches):
                await server.api.clock.sleep(0.01)


async def test_a_watch_with_a_time_limit_ends_properly(server: ApiServer) -> None:
    async with (
        serve(server) as serving,
        aiohttp.ClientSession(serving.url, headers=TOKEN) as client,
        client.get(MAPS, params={"watch": "1", "timeoutSeconds": "1"}) as watch,
    ):
        assert await watch.read() == b""


async def test_stopping_ends_the_watches(server: ApiServer) -> None:
    async with (
        serve(server) as serving,
        aiohttp.ClientSession(serving.url, headers=TOKEN) as client,
        client.get(MAPS, params={"watch": "1"}) as watch,
    ):
        serving.stop()
        assert await watch.read() == b""


async def test_a_body_that_is_too_long_is_rejected_and_the_server_goes_on(server: ApiServer) -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 100_000

    async with serve(server) as serving, aiohttp.ClientSession(serving.url, headers=TOKEN) as client:
        headers = {"content-type": "application/json"}
        for body in (b"x" * 10_000_000, in_pieces()):
            async with client.post(MAPS, data=body, headers=headers) as answer:
                assert answer.status == 413 and "limit is 3145728" in (await answer.json())["message"]
        async with client.post(MAPS, json=config_map("a", text="x" * 1_000_000)) as answer:
            assert answer.status == 201


async def test_garbage_on_the_line_harms_no_one(server: ApiServer) -> None:
    async with serve(server) as serving, aiohttp.ClientSession(serving.url, headers=TOKEN) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(b"\x00\xffnonsense\r\n\r\n")
        assert b"400" in await reader.readline()
        writer.close()
        async with client.get("/version") as answer:
            assert answer.status == 200


async def test_a_port_in_use_is_named(server: ApiServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use"):
            async with serve(server, port=port):
                pass


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com", "::"])
async def test_only_loopback_is_served(server: ApiServer, host: str) -> None:
    with pytest.raises(NotLoopback, match="loopback"):
        async with serve(server, host):
            pass


async def test_tls_is_trusted_through_its_authority(server: ApiServer, tmp_path: Path) -> None:
    tls = make_tls(tmp_path)
    context = ssl.create_default_context(cadata=tls.authority.decode())
    async with serve(server, tls=tls) as serving, aiohttp.ClientSession(serving.url, headers=TOKEN) as client:
        assert serving.url.startswith("https://")
        async with client.get("/version", ssl=context) as answer:
            assert answer.status == 200


async def test_an_error_of_the_caller_comes_out_as_it_went_in(server: ApiServer) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with serve(server):
            raise LookupError("mine")
