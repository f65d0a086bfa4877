"""Watches over WebSockets, as browsers and fabric8's client open them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from pilotage.clock import SystemClock
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.storage.store import Store
from tests.sandbox.api_world import config_map

MAPS = "/api/v1/namespaces/default/configmaps"
TOKEN = {"authorization": "Bearer secret"}
WATCH = {"watch": "1"}


@pytest.fixture
def server() -> ApiServer:
    clock = SystemClock()
    return ApiServer(Api(Store(history=1000), clock=clock, rng=seeded(1)), token="secret", clock=clock)


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with serve(server) as serving, aiohttp.ClientSession(serving.url) as session:
        yield session


async def test_events_are_messages_until_the_client_leaves(server: ApiServer, client: aiohttp.ClientSession) -> None:
    server.api.create("configmaps", "default", config_map("a"))
    async with client.ws_connect(MAPS, params=WATCH, headers=TOKEN) as watch:
        assert (await watch.receive_json())["object"]["metadata"]["name"] == "a"
        for name in "bc":
            server.api.create("configmaps", "default", config_map(name))
        events = [json.loads((await watch.receive()).data) for _ in "bc"]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
            ("ADDED", "b"),
            ("ADDED", "c"),
        ]
        assert len(server.watches) == 1
    async with asyncio.timeout(60):
        while len(server.watches):
            await server.api.clock.sleep(0.01)


async def test_a_time_limit_closes_in_order(client: aiohttp.ClientSession) -> None:
    async with client.ws_connect(MAPS, params={**WATCH, "timeoutSeconds": "1"}, headers=TOKEN) as watch:
        message = await watch.receive()
        assert message.type == aiohttp.WSMsgType.CLOSE
        assert watch.close_code == 1000


async def test_the_token_may_be_a_subprotocol(client: aiohttp.ClientSession) -> None:
    name = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(b"secret").decode().rstrip("=")
    async with client.ws_connect(MAPS, params=WATCH, protocols=(name, "base64.binary.k8s.io")) as watch:
        assert watch.protocol == "base64.binary.k8s.io"
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(MAPS, params=WATCH, protocols=(name[:-2], "base64.binary.k8s.io"))
    assert refused.value.status == 401


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [(MAPS, TOKEN, 200), (MAPS, {}, 401), ("/api/v1/nonsense", TOKEN, 404), (MAPS, {"host": "evil.example"}, 403)],
)
async def test_what_is_no_watch_is_answered_without_an_upgrade(
    client: aiohttp.ClientSession, path: str, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(path, headers=headers)
    assert refused.value.status == status


async def test_a_malformed_token_lets_nobody_in(client: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(
            MAPS, params=WATCH, protocols=("base64url.bearer.authorization.k8s.io.%%", "base64.binary.k8s.io")
        )
    assert refused.value.status in (400, 401)
