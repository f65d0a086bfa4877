"""An HTTP server on loopback that answers lists and watches from a script, and a sink that rebuilds the state.

A test says what the server does, request by request: pages, streams that are cut, statuses. A watch beyond the end
of the script stays open and silent; a list beyond it is a failure of the test.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.tls import TlsSettings


def node(name: str, version: int, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}, **fields}


def line(event_type: str, content: dict[str, Any]) -> bytes:
    return json.dumps({"type": event_type, "object": content}).encode() + b"\n"


def added(name: str, version: int) -> bytes:
    return line("ADDED", node(name, version))


def modified(name: str, version: int) -> bytes:
    return line("MODIFIED", node(name, version))


def deleted(name: str, version: int) -> bytes:
    return line("DELETED", node(name, version))


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": str(version)}})


def status(code: int, reason: str, message: str = "because", **details: Any) -> dict[str, Any]:
    fields = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return fields | ({"details": details} if details else {})


@dataclass(frozen=True)
class Answer:
    """A complete answer."""

    code: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """Chunks, then a proper end, an abrupt cut or silence."""

    chunks: tuple[bytes, ...] = ()
    ending: str = "end"


def page(version: int, *objects: dict[str, Any], more: str = "") -> Answer:
    metadata = {"resourceVersion": str(version)} | ({"continue": more} if more else {})
    return Answer(200, json.dumps({"kind": "NodeList", "metadata": metadata, "items": objects}).encode())


def rejection(code: int, reason: str, message: str = "because", headers: dict[str, str] | None = None) -> Answer:
    return Answer(code, json.dumps(status(code, reason, message)).encode(), headers or {})


def stream(*chunks: bytes, ending: str = "end") -> Stream:
    return Stream(chunks, ending)


class ScriptedServer:
    """Runs on a port of its own; `stop` and `start` again keep the port."""

    def __init__(self, lists: Iterable[Answer], watches: Iterable[Answer | Stream] = ()) -> None:
        self.lists = deque(lists)
        self.watches: deque[Answer | Stream] = deque(watches)
        self.asked: list[dict[str, str]] = []
        self.port = 0
        self._runner: web.AppRunner | None = None
        self._changed = asyncio.Event()
        self.stream_was_left = asyncio.Event()

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/nodes", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def connection(self) -> Connection:
        return Connection(f"http://127.0.0.1:{self.port}", TlsSettings(), StaticCredentials(), "the test")

    @property
    def listed(self) -> list[dict[str, str]]:
        return [query for query in self.asked if "watch" not in query]

    @property
    def watched_from(self) -> list[str]:
        """The versions from which watches were asked for, in order."""
        return [query["resourceVersion"] for query in self.asked if "watch" in query]

    async def until_watched(self, times: int) -> None:
        """Return when that many watches were asked for."""
        async with asyncio.timeout(20):
            while len(self.watched_from) < times:
                self._changed.clear()
                await self._changed.wait()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query))
        self._changed.set()
        if "watch" not in request.query:
            return _answer(self.lists.popleft())
        step = self.watches.popleft() if self.watches else stream(ending="silence")
        if isinstance(step, Answer):
            return _answer(step)
        try:
            return await _play(request, step)
        except asyncio.CancelledError:
            self.stream_was_left.set()
            raise


def _answer(answer: Answer) -> web.Response:
    return web.Response(
        status=answer.code, body=answer.body, headers={"Content-Type": "application/json", **answer.headers}
    )


async def _play(request: web.Request, step: Stream) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for chunk in step.chunks:
        await response.write(chunk)
        # Without a pause the kernel would join the chunks again.
        await asyncio.sleep(0.01)
    if step.ending == "cut":
        assert request.transport is not None
        request.transport.abort()
    elif step.ending == "silence":
        await asyncio.Event().wait()
    return response


@asynccontextmanager
async def serving(server: ScriptedServer) -> AsyncIterator[ScriptedServer]:
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class StateSink:
    """What a scheduler would believe, from nothing but the sink's calls."""

    def __init__(self) -> None:
        self.state: dict[str, int] = {}
        self.replaced = 0
        self.batches: list[int] = []
        self._changed = asyncio.Event()

    def replace(self, kind: str, objects: list[Any]) -> None:
        assert kind == "Node"
        self.state = {item.name: int(item.resource_version) for item in objects}
        self.replaced += 1
        self._changed.set()

    def apply(self, kind: str, events: list[Any]) -> None:
        assert kind == "Node"
        self.batches.append(len(events))
        for event in events:
            if event.type == "DELETED":
                self.state.pop(event.object.name, None)
            else:
                self.state[event.object.name] = int(event.object.resource_version)
        self._changed.set()

    async def until(self, reached: Callable[[dict[str, int]], bool]) -> None:
        async with asyncio.timeout(20):
            while not reached(self.state):
                self._changed.clear()
                await self._changed.wait()
