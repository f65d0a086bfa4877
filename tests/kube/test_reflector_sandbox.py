"""Client and reflector against the embedded API server, over HTTP and in process: both must see the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from pilotage.clock import SystemClock
from pilotage.kube.client import STRATEGIC_MERGE_PATCH, ApiStatusError, KubeClient, ListOptions
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.reflector import Reflector, WatchedKind
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import Transport
from pilotage.model.kinds import KINDS
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.inprocess import InProcessTransport
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.storage.store import Store

from .manual_clock import HurriedClock

TOKEN = "sesame"
both_transports = pytest.mark.parametrize("way", ["http", "in process"])


def make_api(history: int = 1000) -> Api:
    return Api(Store(history=history), clock=SystemClock(), rng=seeded(1))


def pod(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


@asynccontextmanager
async def transport_into(api: Api, way: str) -> AsyncIterator[Transport]:
    server = ApiServer(api, token=TOKEN, clock=SystemClock())
    async with AsyncExitStack() as stack:
        transport: Transport
        if way == "http":
            serving = await stack.enter_async_context(serve(server, "127.0.0.1", 0))
            transport = HttpTransport(connection(serving.url))
        else:
            transport = InProcessTransport(server)
        try:
            yield transport
        finally:
            await transport.close()


def connection(url: str) -> Connection:
    return Connection(url, TlsSettings(), StaticCredentials(token=TOKEN), "the test")


class Mirror:
    """The keys and versions that the reflector's calls add up to."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self._changed = asyncio.Event()

    def replace(self, kind: str, objects: list[Any]) -> None:
        self.state = {item.key: item.resource_version for item in objects}
        self._changed.set()

    def apply(self, kind: str, events: list[Any]) -> None:
        for event in events:
            if event.type == "DELETED":
                del self.state[event.object.key]
            else:
                self.state[event.object.key] = event.object.resource_version
        self._changed.set()

    async def until_equal(self, api: Api, resource: str, **selection: str) -> None:
        async with asyncio.timeout(20):
            while self.state != stored(api, resource, **selection):
                self._changed.clear()
                await self._changed.wait()


def stored(api: Api, resource: str, **selection: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in api.list(resource, **selection):
        metadata = item["metadata"]
        key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        found[key] = metadata["resourceVersion"]
    return found


@asynccontextmanager
async def reflecting(
    transport: Transport, resource: str = "pods", **options: Any
) -> AsyncIterator[tuple[Reflector, Mirror]]:
    mirror = Mirror()
    watched = WatchedKind(KINDS[resource], **options)
    reflector = Reflector(KubeClient(transport), watched, mirror, HurriedClock(), seeded(2))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reflector.run())
        async with asyncio.timeout(20):
            await reflector.wait_synced()
        yield reflector, mirror
        task.cancel()


@both_transports
async def test_what_was_there_and_what_comes_later_arrives(way: str) -> None:
    api = make_api()
    for i in range(7):
        api.create("pods", "default", pod(f"early-{i}"))
    async with transport_into(api, way) as transport, reflecting(transport, page_size=3) as (reflector, mirror):
        await mirror.until_equal(api, "pods")
        assert len(mirror.state) == 7
        api.create("pods", "default", pod("late"))
        api.delete("pods", "default", "early-3")
        await mirror.until_equal(api, "pods")
        assert "default/late" in mirror.state and "default/early-3" not in mirror.state
        assert reflector.lists_completed == 1


@both_transports
async def test_a_selector_turns_leaving_objects_into_deletions(way: str) -> None:
    api = make_api()
    api.create("nodes", "", node("n"))
    api.create("pods", "default", pod("free"))
    api.create("pods", "default", pod("other"))
    async with (
        transport_into(api, way) as transport,
        reflecting(transport, field_selector="spec.nodeName=") as (_, mirror),
    ):
        assert set(mirror.state) == {"default/free", "default/other"}
        await KubeClient(transport).bind("default", "free", api.get("pods", "default", "free")["metadata"]["uid"], "n")
        await mirror.until_equal(api, "pods", field_selector="spec.nodeName=")
        assert set(mirror.state) == {"default/other"}


@both_transports
async def test_a_reflector_that_falls_behind_the_history_lists_again(way: str) -> None:
    api = make_api(history=5)
    async with transport_into(api, way) as transport, reflecting(transport, "nodes") as (reflector, mirror):
        api.create("nodes", "", node("first"))
        await mirror.until_equal(api, "nodes")
        for i in range(40):
            api.create("nodes", "", node(f"n{i}"))
            if i % 2:
                api.delete("nodes", "", f"n{i}")
        await mirror.until_equal(api, "nodes")
        assert len(mirror.state) == 21
        assert reflector.lists_completed >= 2


@both_transports
@pytest.mark.parametrize("seed", range(3))
async def test_random_bursts_of_writes_arrive_completely(way: str, seed: int) -> None:
    rng = random.Random(seed)
    api = make_api(history=20)
    async with transport_into(api, way) as transport, reflecting(transport, page_size=4) as (_, mirror):
        for _ in range(60):
            for _ in range(rng.randrange(12)):
                write(api, rng)
            if rng.random() < 0.7:
                await asyncio.sleep(0)
        await mirror.until_equal(api, "pods")
    assert mirror.state


def write(api: Api, rng: random.Random) -> None:
    name = f"p{rng.randrange(15)}"
    if f"default/{name}" not in stored(api, "pods"):
        api.create("pods", "default", pod(name))
    elif rng.random() < 0.5:
        api.delete("pods", "default", name)
    else:
        patch = b'{"metadata":{"labels":{"v":"%d"}}}' % rng.randrange(10**6)
        api.patch("pods", "default", name, patch, "application/merge-patch+json")


async def test_a_restarted_server_is_followed_from_where_it_was() -> None:
    api = make_api()
    api.create("nodes", "", node("a"))
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        serving = await first.enter_async_context(serve(new_server(api), "127.0.0.1", 0))
        transport = HttpTransport(connection(serving.url))
        stack.push_async_callback(transport.close)
        reflector, mirror = await stack.enter_async_context(reflecting(transport, "nodes"))
        await first.aclose()
        api.create("nodes", "", node("b"))
        await stack.enter_async_context(serve(new_server(api), "127.0.0.1", serving.port))
        await mirror.until_equal(api, "nodes")
        assert set(mirror.state) == {"a", "b"}
        assert reflector.lists_completed == 1


async def test_a_server_that_lost_its_state_is_believed() -> None:
    old, new = make_api(), make_api()
    for i in range(30):
        old.create("nodes", "", node(f"old-{i}"))
    new.create("nodes", "", node("new"))
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        serving = await first.enter_async_context(serve(new_server(old), "127.0.0.1", 0))
        transport = HttpTransport(connection(serving.url))
        stack.push_async_callback(transport.close)
        _, mirror = await stack.enter_async_context(reflecting(transport, "nodes"))
        await mirror.until_equal(old, "nodes")
        await first.aclose()
        await stack.enter_async_context(serve(new_server(new), "127.0.0.1", serving.port))
        await mirror.until_equal(new, "nodes")
        assert set(mirror.state) == {"new"}


def new_server(api: Api) -> ApiServer:
    return ApiServer(api, token=TOKEN, clock=SystemClock())


@both_transports
async def test_the_clients_verbs_work_on_the_sandbox(way: str) -> None:
    api = make_api()
    api.create("nodes", "", node("n"))
    pods = KINDS["pods"]
    async with transport_into(api, way) as transport:
        client = KubeClient(transport)
        assert (await client.version()).git_version.startswith("v1.")
        body = b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
        made = pods.decode(await client.create(pods, "default", body))
        with pytest.raises(ApiStatusError) as exists:
            await client.create(pods, "default", body)
        assert (exists.value.code, exists.value.reason) == (409, "AlreadyExists")
        await client.bind("default", "p", made.uid, "n")
        assert pods.decode(await client.get(pods, "default", "p")).node_name == "n"
        condition = b'{"status":{"conditions":[{"type":"PodScheduled","status":"True"}]}}'
        await client.patch(pods, "default", "p", condition, content_type=STRATEGIC_MERGE_PATCH, subresource="status")
        page = await client.list_page(pods, ListOptions(field_selector="spec.nodeName=n"))
        assert [item.status.conditions[0].type for item in page.items] == ["PodScheduled"]
        await client.delete(pods, "default", "p", b'{"gracePeriodSeconds":0}')
        with pytest.raises(ApiStatusError) as missing:
            await client.get(pods, "default", "p")
        assert (missing.value.code, missing.value.reason) == (404, "NotFound")


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_the_kubeconfig_of_a_sandbox_leads_to_it(tls: bool) -> None:
    clock = SystemClock()
    options = EmbeddedOptions(nodes=2, tls=tls, is_alive=False)
    async with EmbeddedCluster.running(options, clock, seeded(3)) as cluster:
        transport = HttpTransport(load_connection(str(cluster.kubeconfig), clock=clock, environ={}))
        async with reflecting(transport, "nodes") as (_, mirror):
            await mirror.until_equal(cluster.api, "nodes")
            assert len(mirror.state) == 2
        await transport.close()
