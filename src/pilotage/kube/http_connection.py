"""One connection to an HTTP/1.1 server: one exchange at a time, parsed by httptools as the bytes come.

    idle --send()--> waiting for the head --> body --> complete --> idle again, or closed
                                               |
                                               +--> streaming: what has arrived is handed out piece by piece

A scheduler sends two requests for every pod, so this path is kept short: no task and no buffer of its own per request,
one timer, and a future that the last byte of the answer resolves. Headers are kept as they came: they are read of the
few answers that say no.

Requests that may be answered one after the other can be sent in one piece (`exchange_all`): one TLS record, one wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
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


class RawHeaders(Mapping[str, str]):
    """Headers of an answer by name, in lower case; decoded when someone asks."""

    __slots__ = ("_raw",)

    def __init__(self, raw: dict[bytes, bytes]) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> str:
        return self._decoded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def _decoded(self) -> dict[str, str]:
        return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._raw.items()}


class HttpConnection(asyncio.BufferedProtocol):
    """Made by `loop.create_connection`; used by one exchange at a time.

    What arrives is put into `buffer` and parsed at once, so that all connections of an event loop can share one. A
    plain `Protocol` is given a new object of 256 KB, cut to size, for every answer: that leaves the heap in pieces.
    """

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._reset(1)
        self._parser = httptools.HttpResponseParser(self)
        self.is_closed = False
        self.idle_since = 0.0
        self._last_arrival = self._loop.time()
        self._silence: asyncio.TimerHandle | None = None
        """The next look whether a stream is stale."""

    def _reset(self, expected: int, most_bytes: int | None = None, *, wants_stream: bool = False) -> None:
        self._expected = expected
        self._wants_stream = wants_stream
        self._most_bytes = most_bytes
        self._answers: list[Response] = []
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._unread_bytes = 0
        self._is_head_complete = False
        self._is_complete = False
        self._is_paused = False
        self._error: Exception | None = None
        self._keeps_alive = False
        self._status = 0

    # --- exchanges ---------------------------------------------------------------------------------------------

    async def exchange(self, request: bytes, seconds: float, most_bytes: int | None = None) -> Response:
        """Send a request and return its whole answer. Raises ConnectionBroken, or TimeoutError after so many seconds.

        An answer (headers and body) of more than `most_bytes` is not read to its end. The caller closes the connection
        if this is cancelled or raises.
        """
        self._begin(request, 1, most_bytes)
        await self._answered(seconds)
        return self._answers[0]

    async def exchange_all(
        self, requests: Sequence[bytes], seconds: float
    ) -> tuple[list[Response], ConnectionBroken | TimeoutError | None]:
        """Send requests in one piece; returns the answers, in order, and what kept others from coming.

        The server takes one request after the other from the connection, so it is for requests that can wait for each
        other.
        """
        try:
            self._begin(b"".join(requests), len(requests))
            await self._answered(seconds)
        except (ConnectionBroken, TimeoutError) as error:
            return self._answers, error
        return self._answers, None

    async def _answered(self, seconds: float) -> None:
        timer = self._loop.call_later(seconds, self._expire)
        try:
            while not self._is_complete:
                await self._progress()
        finally:
            timer.cancel()

    def _expire(self) -> None:
        self._error = TimeoutError()
        self._wake()

    async def open_stream(self, request: bytes) -> int:
        """Send a request and return the status of its answer, the rest of which may have no end."""
        self._begin(request, 1, wants_stream=True)
        while not self._is_head_complete:
            await self._progress()
        return self._status

    async def chunk(self, stale_seconds: float, gather_seconds: float = 0.0) -> bytes:
        """What has arrived since; b"" at the end of the answer. TimeoutError if nothing has for so long.

        Nothing more is read for `gather_seconds`: what comes meanwhile is decrypted, parsed and handed over together.
        """
        while not self._body and not self._is_complete:
            if self._silence is None:
                self._look_for_life(stale_seconds)
            await self._progress()
        arrived = b"".join(self._body) if len(self._body) != 1 else self._body[0]
        self._body.clear()
        self._unread_bytes = 0
        if gather_seconds and not self._is_complete:
            self._pause()
            self._loop.call_later(gather_seconds, self._read_on)
        else:
            self._read_on()
        return arrived

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _read_on(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def _look_for_life(self, stale_seconds: float) -> None:
        """One timer for all pieces of a stream: it comes back when the last one will be too old."""
        # What has arrived and was not read yet is no silence.
        left = stale_seconds if self._body else self._last_arrival + stale_seconds - self._loop.time()
        if left > 0 and not self.is_closed:
            self._silence = self._loop.call_later(left, self._look_for_life, stale_seconds)
        else:
            self._silence = None
            self._expire()

    async def rest(self, most_bytes: int, seconds: float) -> Response:
        """The answer of a stream whose status says that it is none: up to so many bytes of it."""
        kept: list[bytes] = []
        while sum(map(len, kept)) < most_bytes and (piece := await self.chunk(seconds)):
            kept.append(piece)
        self._body = [b"".join(kept)[:most_bytes]]
        return self._answer()

    @property
    def can_be_reused(self) -> bool:
        return self._is_complete and self._keeps_alive and not self.is_closed

    def close(self) -> None:
        self.is_closed = True
        if self._silence is not None:
            self._silence.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _begin(
        self, request: bytes, expected: int, most_bytes: int | None = None, *, wants_stream: bool = False
    ) -> None:
        self._reset(expected, most_bytes, wants_stream=wants_stream)
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
        body = self._body
        return Response(self._status, RawHeaders(self._headers), body[0] if len(body) == 1 else b"".join(body))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- called by the event loop -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._unread_bytes += nbytes
        if self._wants_stream:
            self._last_arrival = self._loop.time()
        if self._most_bytes is not None and self._unread_bytes > self._most_bytes:
            self._fail(f"the answer is longer than {self._most_bytes} bytes")
            self.close()
            return
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
        if not self._is_complete:
            self._fail(str(exc) if exc is not None and str(exc) else "the server closed it")
        # Both refer back to this object. Left to the garbage collector, the buffers of TLS would stay for hours.
        self._transport = None
        del self._parser

    def _ends_with_connection(self) -> bool:
        """Without a length the end of the connection is the end of the body."""
        return not {name.lower() for name in self._headers} & {b"content-length", b"transfer-encoding"}

    def _fail(self, message: str) -> None:
        self._error = ConnectionBroken(message, was_answering=self._is_head_complete)
        self._wake()

    # --- called by the parser ----------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self._is_head_complete = True
        if self._wants_stream:
            self._wake()

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        if not self._wants_stream:
            return
        if self._unread_bytes > HIGH_WATER_BYTES:
            self._pause()
        self._wake()

    def on_message_complete(self) -> None:
        if self._wants_stream:
            self._is_complete = True
            self._wake()
            return
        self._answers.append(self._answer())
        if len(self._answers) == self._expected:
            self._keeps_alive = self._parser.should_keep_alive()
            self._is_complete = True
            self._wake()
        else:
            self._headers, self._body, self._is_head_complete = {}, [], False
