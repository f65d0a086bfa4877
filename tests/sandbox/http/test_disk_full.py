"""A data directory that cannot be written, as clients see it: errors for writes, and nothing of them afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.watch import Watch
from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Store
from tests.sandbox.api_world import MERGE, WatchReader, World, config_map
from tests.sandbox.failing_disk import Disk

MAPS = "/api/v1/namespaces/default/configmaps"


class Served:
    """A server on a data directory, on a disk that can be made to fail."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.disk = disk
        self.journal = open_journal(path)
        self.world = World(store=Store(history=10_000, journal=self.journal), token="secret")

    async def ask(
        self, method: str, path: str, body: object = None, *, token: str = "secret", **query: str
    ) -> ServerResponse | Watch:
        content_type = MERGE if method == "PATCH" else "application/json"
        headers = {"content-type": content_type, "authorization": f"Bearer {token}"}
        raw = b"" if body is None else json.dumps(body).encode()
        return await self.world.server.respond(Request(method, path, query, headers, raw))

    async def code(self, method: str, path: str, body: object = None) -> int:
        answer = await self.ask(method, path, body)
        assert isinstance(answer, ServerResponse)
        return answer.status

    async def data(self) -> dict[str, Any]:
        """What a list shows."""
        answer = await self.ask("GET", MAPS)
        assert isinstance(answer, ServerResponse) and answer.status == 200
        items = json.loads(answer.body)["items"]
        return {item["metadata"]["name"]: item.get("data") for item in items}

    async def watch(self, **query: str) -> WatchReader:
        answer = await self.ask("GET", MAPS, watch="true", **query)
        assert isinstance(answer, Watch)
        return WatchReader(answer)

    async def repair(self) -> None:
        self.disk.repair()
        async with asyncio.timeout(60):
            while not self.world.store.is_writable:  # noqa: ASYNC110 - a thread sets no event of ours
                await asyncio.sleep(0.002)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    served = Served(tmp_path / "data", Disk(monkeypatch))
    # A server is reached when the namespaces that it begins with are on disk.
    await served.world.store.settled()
    yield served
    served.disk.repair()
    served.world.store.take_back_lost()
    served.journal.close()


async def test_a_burst_on_a_full_disk_leaves_what_was_acknowledged_and_nothing_else(served: Served) -> None:
    for number in range(10):
        assert await served.code("POST", MAPS, config_map(f"old-{number}", v="1")) == 201
    served.disk.fail(after_frames=2)
    model = await served.data()

    async def write(number: int) -> None:
        name, kind = f"new-{number}", number % 3
        old = f"old-{number % 10}"
        if kind == 0:
            if await served.code("POST", MAPS, config_map(name)) == 201:
                model[name] = {}
        elif kind == 1:
            if await served.code("PATCH", f"{MAPS}/{old}", {"data": {"v": name}}) == 200:
                model[old] = {"v": name}
        elif await served.code("DELETE", f"{MAPS}/{old}") == 200:
            model.pop(old)

    await asyncio.gather(*(write(number) for number in range(30)))
    await asyncio.gather(*(write(number) for number in range(100, 130)))
    await asyncio.gather(*(write(number) for number in range(200, 230)))
    shown = await served.data()
    assert {name: data or {} for name, data in shown.items()} == {name: data or {} for name, data in model.items()}
    assert len(shown) < 40, "some were refused"
    for number in range(200, 230):
        assert await served.code("GET", f"{MAPS}/new-{number}") == 404
    await served.repair()
    assert await served.code("POST", MAPS, config_map("new-200")) == 201


async def test_the_answer_names_the_reason(served: Served) -> None:
    served.disk.fail()
    for _ in range(2):
        answer = await served.ask("POST", MAPS, config_map("c"))
        assert isinstance(answer, ServerResponse) and answer.status == 500
        message = json.loads(answer.body)["message"]
        assert "the write was not stored: data directory" in message
        assert "cannot be written: no space left on device" in message


LIST_BY_WATCH = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


@pytest.mark.parametrize("query", [{}, LIST_BY_WATCH])
async def test_a_watch_never_shows_what_failed_and_goes_on_afterwards(served: Served, query: dict[str, str]) -> None:
    await served.code("POST", MAPS, config_map("before"))
    watch = await served.watch(**query)
    names = [obj["metadata"]["name"] for kind, obj in await watch.next() if kind == "ADDED"]
    assert names == ["before"]
    served.disk.fail()
    following = asyncio.ensure_future(watch.names())
    assert await served.code("POST", MAPS, config_map("failed")) == 500
    assert await served.code("DELETE", f"{MAPS}/before") == 500
    await served.repair()
    assert await served.code("POST", MAPS, config_map("after")) == 201
    assert await following == [("ADDED", "after")]
    watch.watch.close()


async def test_reads_that_met_a_write_under_way_show_the_disk(served: Served) -> None:
    await served.code("POST", MAPS, config_map("before"))
    served.disk.fail()
    write = asyncio.ensure_future(served.code("POST", MAPS, config_map("failed")))
    get = asyncio.ensure_future(served.code("GET", f"{MAPS}/failed"))
    shown = asyncio.ensure_future(served.data())
    watching = asyncio.ensure_future(served.watch())
    stranger = asyncio.ensure_future(served.ask("GET", MAPS, token="wrong"))
    assert (await write, await get, list(await shown)) == (500, 404, ["before"])
    watch = await watching
    assert await watch.names() == [("ADDED", "before")]
    watch.watch.close()
    refused = await stranger
    assert isinstance(refused, ServerResponse) and refused.status == 401
    assert len(served.world.server.watches) == 0


async def test_a_definition_that_was_not_stored_is_not_served(served: Served) -> None:
    from tests.sandbox.api_world import definition

    served.disk.fail()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert await served.code("POST", path, definition()) == 500
    assert await served.code("GET", "/apis/example.com/v1/namespaces/default/widgets") == 404
    await served.repair()
    assert await served.code("POST", path, definition()) == 201
    assert await served.code("GET", "/apis/example.com/v1/namespaces/default/widgets") == 200


async def test_a_client_that_leaves_while_its_watch_waits_for_the_disk_leaves_nothing_behind(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(revision: int) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(served.journal, "durable", hang)
        watching = asyncio.ensure_future(served.watch())
        await asyncio.sleep(0)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
    assert len(served.world.server.watches) == 0


async def test_what_controllers_lost_is_taken_back_although_no_one_asks(served: Served) -> None:
    world = served.world
    served.disk.fail()
    world.api.create("configmaps", "default", config_map("by-a-controller"))
    running = asyncio.ensure_future(world.server.run(0.5))
    async with asyncio.timeout(60):
        while world.store.count("configmaps"):
            await world.clock.advance(0.5)
            await asyncio.sleep(0.002)
    running.cancel()
    assert not world.store.is_writable
    await served.repair()
