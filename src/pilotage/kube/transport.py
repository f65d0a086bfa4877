"""How bytes reach an API server and come back: the one seam between the client and the wire.

`KubeClient` and `Reflector` speak to any `Transport`: HTTP to a real cluster, or direct calls into the embedded server
in the same process. The seam carries bytes only; what they mean is the client's business.

Outcomes differ by what the caller can do about them:

    Response          the server answered, with whatever status; also 4xx and 5xx are answers
    StreamRefused     the server answered a `stream()` with a status other than 2xx; the whole answer is inside
    TransportError    there is no (complete) answer; `sent` says whether the request may have taken effect
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias, cast

import msgspec


class Response(msgspec.Struct, frozen=True):
    """A complete answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WireRequest(msgspec.Struct, frozen=True):
    """A request that can wait for the one before it."""

    method: str
    path: str
    body: bytes
    content_type: str = "application/json"


class TransportError(Exception):
    """The request got no (complete) answer.

    `sent` is True when the request may have reached the server: the outcome of a write is then unknown and a blind
    retry may do it twice. False guarantees that the server never saw it.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class NotTrusted(TransportError):
    """The server has no certificate that we trust: waiting does not help."""


class NoIdentity(TransportError):
    """There are no credentials to send a request with: nothing was asked of the server."""


class StreamRefused(Exception):
    """The server answered a stream request with something other than a stream, such as 410 or 429."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"the server answered {response.status} instead of a stream")
        self.response = response


class Transport(Protocol):
    """A connection (or a pool of them) to one API server."""

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
        """Send one request and return the complete answer, whatever its status.

        `timeout_seconds` bounds the whole exchange; None means the transport's own default, never "for ever".
        Raises TransportError when there is no complete answer.
        """

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a GET whose answer does not end by itself, such as a watch.

        Entering raises StreamRefused for an answer outside 2xx and TransportError when there is none. The iterator
        yields non-empty chunks as they come, not aligned to lines; it ends when the server ends the stream properly
        and raises TransportError when the connection breaks or goes stale. Leaving the context closes the stream.
        """

    async def close(self) -> None:
        """Release every connection; the transport cannot be used afterwards. Safe to call twice."""


Answered: TypeAlias = Response | TransportError


class BundlingTransport(Transport, Protocol):
    """A transport that can send several requests in one piece."""

    async def send_all(self, requests: Sequence[WireRequest]) -> list[Answered]:
        """Send requests that can wait for each other; returns what each came to. Raises no TransportError."""


def bundling(transport: Transport) -> BundlingTransport | None:
    """The transport, if it is one that `sends_together`: others look at requests one by one."""
    return cast("BundlingTransport", transport) if getattr(transport, "sends_together", False) else None
