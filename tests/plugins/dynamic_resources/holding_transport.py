"""A transport that holds back writes to the status of a claim until the test lets them go, and sees if they race."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

from pilotage.kube.transport import Response, Transport


class HoldingTransport:
    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._gate = asyncio.Event()
        self._held = ""
        self.writes: list[tuple[str, int]] = []
        """Path and answer of every write to the status of a claim."""
        self.begun = 0
        self._writing: Counter[str] = Counter()
        self.has_raced = False

    def hold(self, claim: str) -> None:
        self._held = f"/resourceclaims/{claim}/status"

    def let_go(self) -> None:
        self._gate.set()

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
        is_claim = method == "PATCH" and "/resourceclaims/" in path and path.endswith("/status")
        if is_claim:
            self.begun += 1
            self.has_raced |= self._writing[path] > 0
            self._writing[path] += 1
            if self._held and path.endswith(self._held):
                await self._gate.wait()
        answer = await self._inner.request(
            method, path, query=query, body=body, content_type=content_type, timeout_seconds=timeout_seconds
        )
        if is_claim:
            self._writing[path] -= 1
            self.writes.append((path, answer.status))
        return answer

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(path, query)

    async def close(self) -> None:
        await self._inner.close()
