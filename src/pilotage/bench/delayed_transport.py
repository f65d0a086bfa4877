"""A transport whose writes take a while: what an API server far away or under load feels like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

from pilotage.clock import Clock
from pilotage.kube.transport import Response, Transport


class DelayedTransport:
    """Passes everything on; the answer to a write comes `seconds` later."""

    def __init__(self, inner: Transport, clock: Clock, seconds: float) -> None:
        self._inner = inner
        self._clock = clock
        self._seconds = seconds

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
        response = await self._inner.request(
            method, path, query=query, body=body, content_type=content_type, timeout_seconds=timeout_seconds
        )
        if method != "GET":
            await self._clock.sleep(self._seconds)
        return response

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(path, query)

    async def close(self) -> None:
        await self._inner.close()
