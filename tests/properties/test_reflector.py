"""Whatever the server and the network do, the sink ends up with the server's state.

A random history of writes is played by a small API server behind the `Transport` protocol: it pages its lists,
forgets old versions, cuts answers at any byte, fails, expires and mixes in garbage. When it stops being nasty, the
reflector must arrive at exactly the server's objects, and must have delivered no change out of order.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.kube.client import KubeClient
from pilotage.kube.reflector import Reflector, WatchedKind
from pilotage.kube.transport import Response, StreamRefused, TransportError
from pilotage.model.kinds import KINDS, WatchEvent

GONE = Response(410, {}, b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}')
GONE_EVENT = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
FAILED = Response(500, {}, b'{"kind":"Status","code":500,"reason":"InternalError","message":"sorry"}')
BUSY = Response(429, {"retry-after": "1"}, b"")


class NastyServer:
    """Node objects under versions, with a history that is cut short now and then. A seed decides everything."""

    def __init__(self, seed: int, writes: int, nastiness: float, *, only_cuts: bool = False) -> None:
        self.rng = random.Random(seed)
        self.only_cuts = only_cuts
        self.version = 10
        self.objects: dict[str, int] = {}
        self.history: list[tuple[int, str, str]] = []
        self.forgotten = 10
        self.writes_left = writes
        self.nastiness = nastiness
        self.lists = 0
        self._frozen: dict[str, tuple[int, list[tuple[str, int]]]] = {}

    def is_nasty(self) -> bool:
        return self.writes_left > 0 and self.rng.random() < self.nastiness

    def write_some(self) -> None:
        for _ in range(min(self.writes_left, self.rng.randrange(6))):
            self._write(f"n{self.rng.randrange(8)}")
        if not self.only_cuts and self.writes_left > 0 and self.rng.random() < 0.1:
            self.forgotten = self.version - self.rng.randrange(3)

    def _write(self, name: str) -> None:
        self.writes_left -= 1
        self.version += 1
        known = name in self.objects
        if known and self.rng.random() < 0.4:
            del self.objects[name]
            self.history.append((self.version, "DELETED", name))
            return
        self.objects[name] = self.version
        self.history.append((self.version, "MODIFIED" if known else "ADDED", name))

    # --- the Transport protocol ------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float | None = None,
    ) -> Response:
        await asyncio.sleep(0)
        self.write_some()
        assert query is not None
        if self.is_nasty():
            trick = self.rng.randrange(4)
            if trick == 0:
                raise TransportError("cut", sent=True)
            return (FAILED, BUSY, Response(200, {}, b"{not json"))[trick - 1]
        return self._page(int(query["limit"]), query.get("continue", ""))

    def _page(self, limit: int, token: str) -> Response:
        if token:
            if self.is_nasty() and not self.only_cuts:
                return GONE
            version, rest = self._frozen[token]
        else:
            self.lists += 1
            version, rest = self.version, sorted(self.objects.items())
        page, rest = rest[:limit], rest[limit:]
        metadata = {"resourceVersion": str(version)}
        if rest:
            metadata["continue"] = f"t{len(self._frozen)}"
            self._frozen[metadata["continue"]] = (version, rest)
        items = [node(name, at) for name, at in page]
        return Response(200, {}, json.dumps({"metadata": metadata, "items": items}).encode())

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(0)
        self.write_some()
        assert query is not None
        since = int(query["resourceVersion"])
        if self.is_nasty() and self.rng.random() < 0.5:
            if self.rng.random() < 0.5:
                raise TransportError("rejected", sent=False)
            raise StreamRefused(BUSY if self.only_cuts else self.rng.choice((FAILED, BUSY)))
        if since < self.forgotten:
            if self.rng.random() < 0.5:
                raise StreamRefused(GONE)
            yield self._cut([GONE_EVENT])
            return
        yield self._follow(since)

    async def _cut(self, lines: list[bytes]) -> AsyncIterator[bytes]:
        """The lines, cut at random places."""
        text = b"".join(lines)
        while text:
            size = self.rng.randrange(1, len(text) + 1)
            yield text[:size]
            text = text[size:]

    async def _follow(self, since: int) -> AsyncIterator[bytes]:
        while True:
            self.write_some()
            lines = [event(kind, name, at) for at, kind, name in self.history if at > since]
            since = self.version
            if self.rng.random() < 0.2:
                lines.append(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n' % since)
            if self.is_nasty() and not self.only_cuts:
                lines.insert(self.rng.randrange(len(lines) + 1), self.rng.choice((b"garbage\n", b"{}\n", b"\n")))
            ends_here = self.is_nasty()
            async for piece in self._cut(lines):
                yield piece
                if ends_here and self.rng.random() < 0.3:
                    raise TransportError("cut in the middle", sent=True)
            if ends_here:
                return
            if self.writes_left <= 0:
                await asyncio.Event().wait()
            await asyncio.sleep(0)

    async def close(self) -> None:
        pass


def node(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}


def event(kind: str, name: str, version: int) -> bytes:
    return json.dumps({"type": kind, "object": node(name, version)}).encode() + b"\n"


class CheckingSink:
    def __init__(self) -> None:
        self.state: dict[str, int] = {}
        self.newest = 0
        self._called = asyncio.Event()

    async def until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._called.clear()
            await self._called.wait()

    def replace(self, kind: str, objects: list[Any]) -> None:
        self.state = {item.name: int(item.resource_version) for item in objects}
        self._called.set()

    def apply(self, kind: str, events: list[WatchEvent]) -> None:
        for change in events:
            version = int(change.object.resource_version)
            assert version > self.newest, "no change comes twice or out of order"
            self.newest = version
            if change.type == "DELETED":
                del self.state[change.object.name]
            else:
                self.state[change.object.name] = version
        self._called.set()


class ImpatientClock:
    """Sleeping takes no time but lets the time pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 30
        self.now += seconds
        await asyncio.sleep(0)


async def play(server: NastyServer) -> CheckingSink:
    sink = CheckingSink()
    reflector = Reflector(
        KubeClient(server),
        WatchedKind(KINDS["nodes"], page_size=3),
        sink,
        ImpatientClock(),
        random.Random(server.rng.random()),
    )
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(reflector.run())
        await reflector.wait_synced()
        await sink.until(lambda: server.writes_left <= 0 and sink.state == server.objects)
        task.cancel()
    return sink


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), writes=st.integers(0, 120), nastiness=st.sampled_from([0.0, 0.1, 0.3, 0.6]))
def test_the_sink_ends_up_with_the_servers_state(seed: int, writes: int, nastiness: float) -> None:
    server = NastyServer(seed, writes, nastiness)
    sink = asyncio.run(play(server))
    assert sink.state == server.objects


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), writes=st.integers(0, 120), nastiness=st.sampled_from([0.1, 0.3, 0.6]))
def test_cuts_and_failures_alone_never_cost_a_second_list(seed: int, writes: int, nastiness: float) -> None:
    server = NastyServer(seed, writes, nastiness, only_cuts=True)
    sink = asyncio.run(play(server))
    assert sink.state == server.objects
    assert server.lists == 1
