"""Writes through the delayed transport take longer; reads do not."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotage.bench.delayed_transport import DelayedTransport
from pilotage.kube.transport import Response


class Clock:
    def __init__(self) -> None:
        self.slept: list[float] = []

    def time(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Server:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes | None]] = []

    async def request(self, method: str, path: str, *, body: bytes | None = None, **_: Any) -> Response:
        self.requests.append((method, path, body))
        return Response(200, {}, b"answer")

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        raise AssertionError("not used here")
        yield

    async def close(self) -> None:
        self.requests.append(("CLOSE", "", None))


@pytest.mark.parametrize(("method", "delays"), [("GET", []), ("POST", [0.02]), ("PATCH", [0.02]), ("DELETE", [0.02])])
async def test_only_writes_are_delayed(method: str, delays: list[float]) -> None:
    clock, server = Clock(), Server()
    transport = DelayedTransport(server, clock, 0.02)  # type: ignore[arg-type]
    response = await transport.request(method, "/x", body=b"b")
    assert response.body == b"answer"
    assert server.requests == [(method, "/x", b"b")]
    assert clock.slept == delays
