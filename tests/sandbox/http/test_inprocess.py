from __future__ import annotations

import json

import pytest

from pilotage.kube.transport import StreamRefused, Transport, TransportError
from pilotage.sandbox.http.inprocess import InProcessTransport
from tests.sandbox.api_world import World, config_map

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def world() -> World:
    return World(token="secret")


@pytest.fixture
def transport(world: World) -> Transport:
    return InProcessTransport(world.server)


async def test_requests_need_no_token(world: World, transport: Transport) -> None:
    answer = await transport.request("POST", MAPS, body=json.dumps(config_map("a")).encode())
    assert answer.status == 201 and answer.headers["content-type"] == "application/json"
    listed = await transport.request("GET", MAPS, query={"labelSelector": "a=b"})
    assert json.loads(listed.body)["items"] == []


async def test_rejections_are_answers(transport: Transport) -> None:
    answer = await transport.request("GET", f"{MAPS}/missing")
    assert answer.status == 404 and json.loads(answer.body)["reason"] == "NotFound"


async def test_a_patch_carries_its_content_type(world: World, transport: Transport) -> None:
    world.api.create("configmaps", "default", config_map("a"))
    body = b'{"data":{"x":"y"}}'
    answer = await transport.request("PATCH", f"{MAPS}/a", body=body, content_type="application/merge-patch+json")
    assert json.loads(answer.body)["data"] == {"x": "y"}


async def test_a_stream_yields_what_happens_and_is_closed_on_leaving(world: World, transport: Transport) -> None:
    async with transport.stream(MAPS, {"watch": "1"}) as chunks:
        world.api.create("configmaps", "default", config_map("a"))
        assert json.loads(await anext(chunks))["object"]["metadata"]["name"] == "a"
        assert len(world.server.watches) == 1
    assert len(world.server.watches) == 0


async def test_a_stream_that_is_rejected_says_why(transport: Transport) -> None:
    with pytest.raises(StreamRefused) as refused:
        async with transport.stream("/api/v1/nothings", {"watch": "1"}):
            pass
    assert refused.value.response.status == 404


async def test_a_watch_is_no_plain_request(world: World, transport: Transport) -> None:
    with pytest.raises(TransportError):
        await transport.request("GET", MAPS, query={"watch": "1"})
    assert len(world.server.watches) == 0


async def test_a_closed_transport_sends_nothing(world: World, transport: Transport) -> None:
    await transport.close()
    revision = world.store.revision
    with pytest.raises(TransportError) as refused:
        await transport.request("POST", MAPS, body=json.dumps(config_map("a")).encode())
    assert not refused.value.sent and world.store.revision == revision
