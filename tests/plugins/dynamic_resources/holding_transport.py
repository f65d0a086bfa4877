"""A transport that holds back writes to the status of a claim until the test lets them go, and sees if they race."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from pilotage.kube.transport import Response, Transport
from tests.passing_transport import PassingTransport


class HoldingTransport(PassingTransport):
    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
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

    async def request(self, method: str, path: str, **options: Any) -> Response:
        is_claim = method == "PATCH" and "/resourceclaims/" in path and path.endswith("/status")
        if is_claim:
            self.begun += 1
            self.has_raced |= self._writing[path] > 0
            self._writing[path] += 1
            if self._held and path.endswith(self._held):
                await self._gate.wait()
        answer = await super().request(method, path, **options)
        if is_claim:
            self._writing[path] -= 1
            self.writes.append((path, answer.status))
        return answer
