"""Limits for clients before they are authenticated: the size of a request's head, its time, and connections.

uvicorn reads heads of any length for as long as they take, from as many clients as come. Here a head has limits, a
request that does not arrive completely is given up, and a client too many is sent away at once.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES: Final = 128 * 1024
MOST_HEADERS: Final = 100
MOST_CONNECTIONS: Final = 512
"""Well below the 1,024 open files that a process may have by default."""
REQUEST_SECONDS: Final = 30.0
"""How long a new connection may say nothing, and a request may take to arrive."""


class _HeadTooLarge(Exception):
    pass


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's own, with limits. Its runner calls `give_up_if_late` now and then."""

    _waiting_since: float | None = None
    """Since when a request is awaited or arrives; None while there is none, or while it is answered."""
    _is_in_head = True
    _is_head_too_large = False
    _head_bytes = 0
    _is_rejected = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        if len(self.connections) > MOST_CONNECTIONS:
            self._reject(HTTPStatus.SERVICE_UNAVAILABLE, f"there are {MOST_CONNECTIONS} connections already; try later")

    def data_received(self, data: bytes) -> None:
        if self._is_rejected:
            return
        if self._is_in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._head_bytes > MOST_HEAD_BYTES:
            self._reject_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._waiting_since = self.loop.time()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MOST_HEAD_BYTES or len(self.headers) > MOST_HEADERS:
            # The parser stops at this, and `send_400_response` is called.
            self._is_head_too_large = True
            raise _HeadTooLarge
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._waiting_since = None
        self._is_in_head = True
        self._head_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._is_head_too_large:
            self._reject_head()
        else:
            self._reject(HTTPStatus.BAD_REQUEST, msg)

    def give_up_if_late(self, now: float) -> None:
        if self._waiting_since is not None and now - self._waiting_since > REQUEST_SECONDS:
            self._reject(HTTPStatus.REQUEST_TIMEOUT, f"the request did not arrive within {REQUEST_SECONDS:g} s")

    def _reject_head(self) -> None:
        limits = f"{MOST_HEADERS} headers and {MOST_HEAD_BYTES} bytes"
        self._reject(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the head of the request is too large: at most {limits}"
        )

    def _reject(self, status: HTTPStatus, message: str) -> None:
        """Answer without having looked at the request, and hang up."""
        self._is_rejected = True
        self._waiting_since = None
        document: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": status.value,
        }
        body = msgspec.json.encode(document)
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()
