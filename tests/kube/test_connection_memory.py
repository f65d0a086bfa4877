"""What connections leave behind: a TLS connection takes 300 KB, and a watch is a new one every few minutes."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
import trustme
import uvloop
from aiohttp import web

from pilotage.kube.http_connection import HttpConnection
from pilotage.kube.http_transport import HttpSettings, HttpTransport

from .loopback import served, transport_to
from .test_tls import server_context, trusting

PATIENCE_SECONDS = 10.0


async def slowly(request: web.BaseRequest) -> web.StreamResponse:
    """An answer that takes a while, so that requests need connections of their own; an endless one at /stream."""
    if request.path == "/stream":
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"begun\n")
        await asyncio.sleep(PATIENCE_SECONDS)
        return answer
    await asyncio.sleep(0.02)
    return web.Response()


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110 - nothing tells when an object is freed
            await asyncio.sleep(0.01)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[HttpConnection]]:
    """The connections made from now on, as long as anything keeps them."""
    found: list[weakref.ref[HttpConnection]] = []
    original = HttpConnection.__init__

    def note(self: HttpConnection, buffer: memoryview) -> None:
        original(self, buffer)
        found.append(weakref.ref(self))

    monkeypatch.setattr(HttpConnection, "__init__", note)
    return found


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive(made: list[weakref.ref[HttpConnection]]) -> int:
    return sum(one() is not None for one in made)


def with_tls(work: Callable[[HttpTransport], object], settings: HttpSettings | None = None) -> None:
    """As the scheduler runs: on uvloop."""
    authority = trustme.CA()

    async def run() -> None:
        context = server_context(authority, "localhost")
        async with (
            served(slowly, context) as url,
            transport_to(url, tls=trusting(authority), settings=settings) as it,
        ):
            await work(it)  # type: ignore[misc]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_connections_beyond_the_usual_need_are_closed_while_others_are_in_use(
    made: list[weakref.ref[HttpConnection]], no_collector: None
) -> None:
    async def work(it: HttpTransport) -> None:
        await asyncio.gather(*(it.request("GET", "/") for _ in range(12)))
        assert len(made) > 1
        busy = asyncio.create_task(_one_after_the_other(it))
        await eventually(lambda: alive(made) == 1)
        busy.cancel()

    with_tls(work, HttpSettings(idle_seconds=0.3))


def test_a_pool_that_is_not_used_any_more_keeps_no_connection(
    made: list[weakref.ref[HttpConnection]], no_collector: None
) -> None:
    async def work(it: HttpTransport) -> None:
        await asyncio.gather(*(it.request("GET", "/") for _ in range(4)))
        await eventually(lambda: alive(made) == 0)

    with_tls(work, HttpSettings(idle_seconds=0.3))


def test_a_stream_that_ended_leaves_nothing_to_the_garbage_collector(
    made: list[weakref.ref[HttpConnection]], no_collector: None
) -> None:
    async def work(it: HttpTransport) -> None:
        for _ in range(3):
            assert await _beginning(it) == b"begun\n"
        await eventually(lambda: alive(made) == 0)

    with_tls(work)


async def _one_after_the_other(it: HttpTransport) -> None:
    while True:
        await it.request("GET", "/")


async def _beginning(it: HttpTransport) -> bytes:
    async with it.stream("/stream") as chunks:
        return await anext(chunks)
