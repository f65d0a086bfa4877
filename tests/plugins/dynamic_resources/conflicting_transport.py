"""A transport whose first writes to the status of claims find that somebody was faster."""

from __future__ import annotations

from typing import Any

from pilotage.kube.transport import Response, Transport
from tests.passing_transport import PassingTransport


class ConflictingTransport(PassingTransport):
    """Answers 409 to so many writes of a claim's status; everything else is passed on."""

    def __init__(self, inner: Transport, conflicts: int) -> None:
        super().__init__(inner)
        self.left = conflicts

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method == "PATCH" and "/resourceclaims/" in path and path.endswith("/status") and self.left:
            self.left -= 1
            status = b'{"kind":"Status","status":"Failure","reason":"Conflict","message":"modified","code":409}'
            return Response(409, {"content-type": "application/json"}, status)
        return await super().request(method, path, **options)
