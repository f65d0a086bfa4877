"""A transport that passes everything on: the base of those that look at requests or get in their way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from pilotage.kube.transport import Response, Transport


class PassingTransport:
    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def request(self, method: str, path: str, **options: Any) -> Response:
        return await self.inner.request(method, path, **options)

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.inner.stream(path, query)

    async def close(self) -> None:
        await self.inner.close()
