"""How controllers write what admission webhooks want to see first.

A controller is synchronous and a webhook is not. So a write that concerns a webhook ends the call of `reconcile` by
`AwaitsWebhooks`; the loop has the webhooks asked and the write carried out, and calls the controller again for the same
key, which finds it done. A write that was rejected is rejected when the controller tries it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.admission_webhooks import OPERATIONS, AdmissionWebhooks
from pilotage.sandbox.http.exchange import Request, ServerResponse, encode_json
from pilotage.sandbox.kinds.resources import ResourceType

_FAILED: Final = 300

CarryOut = Callable[[Request], Awaitable[Any]]


class AwaitsWebhooks(Exception):
    """The write is to be carried out by `WebhookGate.carry_out`."""

    def __init__(self, request: Request) -> None:
        super().__init__(str(request))
        self.request = request


class WebhookGate:
    """Between the controllers of a sandbox and its server."""

    def __init__(self, webhooks: AdmissionWebhooks, respond: CarryOut) -> None:
        self._webhooks = webhooks
        self._respond = respond
        self._rejected: dict[tuple[str, str], ApiError] = {}

    def check(
        self, method: str, resource_type: ResourceType, namespace: str, name: str, obj: Any, subresource: str = ""
    ) -> None:
        """AwaitsWebhooks if webhooks are to be asked about the write; ApiError if it was rejected a moment ago."""
        if not self._webhooks.concern(resource_type, OPERATIONS[method], subresource):
            return
        path = resource_type.path(namespace, name) + (f"/{subresource}" if subresource else "")
        rejection = self._rejected.pop((method, path), None)
        if rejection is not None:
            raise rejection
        raise AwaitsWebhooks(Request(method, path, body=encode_json(obj)))

    async def carry_out(self, request: Request) -> None:
        """Ask the webhooks and write; a rejection is kept for the controller that comes again with the write."""
        answer = await self._respond(request)
        if isinstance(answer, ServerResponse) and answer.status >= _FAILED:
            status = msgspec.json.decode(answer.body)
            error = ApiError(answer.status, status.get("reason", ""), status.get("message", ""), status.get("details"))
            self._rejected[request.method, request.path] = error
