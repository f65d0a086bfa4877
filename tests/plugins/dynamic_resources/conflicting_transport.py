"""A transport whose first writes to the status of claims find that somebody was faster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

from pilotage.kube.transport import Response, Transport


class ConflictingTransport:
    """Answers 409 to so many writes of a claim's status; everything else is passed on."""

    def __init__(self, inner: Transport, conflicts: int) -> None:
        self._inner = inner
        self.left = conflicts

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
        if method == "PATCH" and "/resourceclaims/" in path and path.endswith("/status") and self.left:
            self.left -= 1
            status = b'{"kind":"Status","status":"Failure","reason":"Conflict","message":"modified","code":409}'
            return Response(409, {"content-type": "application/json"}, status)
        return await self._inner.request(
            method, path, query=query, body=body, content_type=content_type, timeout_seconds=timeout_seconds
        )

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(path, query)

    async def close(self) -> None:
        await self._inner.close()
