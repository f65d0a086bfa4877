"""One connection to an HTTP/1.1 server: one exchange at a time, parsed by httptools as the bytes come.

    idle --send()--> waiting for the head --> body --> complete --> idle again, or closed
                                               |
                                               +--> streaming: what has arrived is handed out piece by piece

A scheduler sends two requests for every pod, so this path is kept short: no task, no timer and no buffer of its own per
request, only a future that the last byte of the answer resolves.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

import httptools

from pilotage.kube.transport import Response

HIGH_WATER_BYTES: Final = 1 << 20
READ_BYTES: Final = 1 << 18


class ConnectionBroken(Exception):
    """The connection ended, or what came is not HTTP, before the answer was complete."""

    def __init__(self, message: str, *, was_answering: bool) -> None:
        super().__init__(message)
        self.was_answering = was_answering
        """Whether the answer had begun."""


class HttpConnection(asyncio.BufferedProtocol):
    """Made by `loop.create_connection`; used by one exchange at a time.

    What arrives is put into `buffer` and parsed at once, so that all connections of an event loop can share one. A
    plain `Protocol` is given a new object of 256 KB, cut to size, for every answer: that leaves the heap in pieces.
    """

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._wants_stream = False
        self._most_bytes: int | None = None
        self._reset()
        self.is_closed = False
        self.idle_since = 0.0

    def _reset(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._unread_bytes = 0
        self._is_head_complete = False
        self._is_complete = False
        self._is_paused = False
        self._error: ConnectionBroken | None = None
        self._keeps_alive = False
        self._status = 0

    # --- exchanges ---------------------------------------------------------------------------------------------

    async def exchange(self, request: bytes, most_bytes: int | None = None) -> Response:
        """Send a request and return its whole answer. Raises ConnectionBroken; the caller closes it if cancelled.

        An answer (headers and body) of more than `most_bytes` is not read to its end.
        """
        self._begin(request, wants_stream=False, most_bytes=most_bytes)
        while not self._is_complete:
            await self._progress()
        return self._answer()

    async def open_stream(self, request: bytes) -> int:
        """Send a request and return the status of its answer, the rest of which may have no end."""
        self._begin(request, wants_stream=True)
        while not self._is_head_complete:
            await self._progress()
        return self._status

    async def chunk(self) -> bytes:
        """What has arrived since; b"" at the end of the answer."""
        while not self._body and not self._is_complete:
            await self._progress()
        arrived = b"".join(self._body) if len(self._body) != 1 else self._body[0]
        self._body.clear()
        self._unread_bytes = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return arrived

    async def rest(self, most_bytes: int) -> Response:
        """The answer of a stream whose status says that it is none: up to so many bytes of it."""
        kept: list[bytes] = []
        while sum(map(len, kept)) < most_bytes and (piece := await self.chunk()):
            kept.append(piece)
        self._body = [b"".join(kept)[:most_bytes]]
        return self._answer()

    @property
    def can_be_reused(self) -> bool:
        return self._is_complete and self._keeps_alive and not self.is_closed

    def close(self) -> None:
        self.is_closed = True
        if self._transport is not None:
            self._transport.abort()

    def _begin(self, request: bytes, *, wants_stream: bool, most_bytes: int | None = None) -> None:
        self._reset()
        self._most_bytes = most_bytes
        self._wants_stream = wants_stream
        if self.is_closed or self._transport is None:
            raise ConnectionBroken("it was closed", was_answering=False)
        self._transport.write(request)

    async def _progress(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None:
            raise self._error

    def _answer(self) -> Response:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers}
        return Response(self._status, headers, self._body[0] if len(self._body) == 1 else b"".join(self._body))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- called by the event loop -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except httptools.HttpParserError as error:
            self._fail(f"the answer is not HTTP: {error}")
            self.close()

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        if self._is_head_complete and not self._is_complete and exc is None and self._ends_with_connection():
            self.on_message_complete()
        elif not self._is_complete:
            self._fail(str(exc) if exc is not None and str(exc) else "the server closed it")
        # Both refer back to this object. Left to the garbage collector, the buffers of TLS would stay for hours.
        self._transport = None
        del self._parser

    def _ends_with_connection(self) -> bool:
        """Without a length the end of the connection is the end of the body."""
        names = {name.lower() for name, _ in self._headers}
        return not names & {b"content-length", b"transfer-encoding"}

    def _fail(self, message: str) -> None:
        self._error = ConnectionBroken(message, was_answering=self._is_head_complete)
        self._wake()

    # --- called by the parser ----------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self._is_head_complete = True
        if self._wants_stream:
            self._wake()

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        self._count(len(body))
        if not self._wants_stream:
            return
        if self._unread_bytes > HIGH_WATER_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def _count(self, arrived: int) -> None:
        self._unread_bytes += arrived
        if self._most_bytes is not None and self._unread_bytes > self._most_bytes and not self.is_closed:
            self._fail(f"the answer is longer than {self._most_bytes} bytes")
            self.close()

    def on_message_complete(self) -> None:
        self._is_complete = True
        self._keeps_alive = self._parser.should_keep_alive()
        self._wake()
