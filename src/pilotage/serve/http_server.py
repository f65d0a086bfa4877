"""HTTP/1.1 for unknown clients: everything that they decide about has a bound.

How many there are (`visitors.py`), how long a handshake, a request and the pause between two may take, how large a
request may be. One request at a time is read, answered and forgotten; what is sent before the answer is not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote

import httptools

from pilotage.clock import Clock
from pilotage.observe.instruments import Counter
from pilotage.serve.identity import ClientCertificate
from pilotage.serve.page import PageAnswer, PageRequest, error_answer
from pilotage.serve.visitors import ServerLimits, Visitor, Visitors

log = logging.getLogger(__name__)

Answerer = Callable[[PageRequest, ClientCertificate | None], Awaitable[PageAnswer]]
Context = Callable[[], ssl.SSLContext | None]
"""What a connection is accepted with: the certificate and the authorities of this moment; None for plain HTTP."""

_READ_BYTES: Final = 16 << 10
_DRAIN_SECONDS: Final = 1.0
_DRAIN_READS: Final = 64
_REVIEWS: Final = b"/admission/queued"
"""The webhook of `admission_pages`; API servers add a query to its path."""
_MOST_QUERY_FIELDS: Final = 100
_NO_SOCKET_PAUSE_SECONDS: Final = 0.5
_LAST: Final = "Connection: close\r\n"
_SAFE: Final = "X-Content-Type-Options: nosniff\r\nCache-Control: no-cache, private\r\n"


class _BadRequest(Exception):
    """The answer is inside."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer = error_answer(status, reason, message)


class HttpServer:
    """Accepts on a listening socket until cancelled."""

    def __init__(self, answer: Answerer, context: Context, limits: ServerLimits, closed: Counter, clock: Clock) -> None:
        """`closed` counts connections that were closed or refused because there were too many."""
        self._answer = answer
        self._context = context
        self._limits = limits
        self._visitors = Visitors(limits, closed)
        self._clock = clock
        self._is_full = False

    async def serve(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    accepted, address = await loop.sock_accept(listening)
                except OSError as error:
                    # Out of file descriptors, or a visitor who is gone already.
                    log.warning("a connection cannot be accepted: %s", error)
                    await self._clock.sleep(_NO_SOCKET_PAUSE_SECONDS)
                    continue
                self._admit(tasks, accepted, str(address[0]))

    def _admit(self, tasks: asyncio.TaskGroup, accepted: socket.socket, address: str) -> None:
        visitor = Visitor(address, accepted.close)
        if not self._visitors.admit(visitor):
            accepted.close()
            if not self._is_full:
                log.warning("all connections are in use, others are refused: address=%s", address)
            self._is_full = True
            return
        self._is_full = False
        visitor.close = tasks.create_task(self._visit(accepted, visitor), name="visitor").cancel

    async def _visit(self, accepted: socket.socket, visitor: Visitor) -> None:
        try:
            await self._converse(await _Conversation.begin(accepted, self._context(), self._limits), visitor)
        except (OSError, TimeoutError, EOFError) as error:
            # They have left, or were too slow: there is no one to answer.
            log.debug("a visitor is gone: address=%s error=%s", visitor.address, error)
        except Exception:
            log.exception("a visitor could not be answered: address=%s", visitor.address)
        finally:
            self._visitors.gone(visitor)

    async def _converse(self, conversation: _Conversation, visitor: Visitor) -> None:
        try:
            while await conversation.has_begun():
                try:
                    request = await conversation.request(visitor.address)
                except _BadRequest as refused:
                    await conversation.send(refused.answer, "GET", keeps_alive=False)
                    await conversation.drain_input()
                    return
                # What a client has shown was verified with authorities that may be trusted no more. Who has shown
                # nothing is answered once more: an API server that asks about an object would fail its creation.
                is_outdated = conversation.context is not self._context()
                if is_outdated and conversation.certificate is not None:
                    return
                visitor.is_busy = True
                answer = await self._answer(request, conversation.certificate)
                keeps_alive = conversation.keeps_alive and not is_outdated
                await conversation.send(answer, request.method, keeps_alive=keeps_alive)
                self._visitors.waits(visitor)
                if not keeps_alive:
                    return
        finally:
            conversation.end()


class _Conversation:
    """One connection: its requests and answers in turn."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext | None,
        limits: ServerLimits,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._arrived = b""
        self._is_first = True
        self.context = context
        self.keeps_alive = True
        self.certificate = _certificate(writer)

    @classmethod
    async def begin(
        cls, accepted: socket.socket, context: ssl.SSLContext | None, limits: ServerLimits
    ) -> _Conversation:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_READ_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                accepted,
                ssl=context,
                ssl_handshake_timeout=None if context is None else limits.request_seconds,
            )
        except BaseException:
            accepted.close()
            raise
        # So that `drain` returns when everything is sent.
        transport.set_write_buffer_limits(0)
        return cls(reader, asyncio.StreamWriter(transport, protocol, reader, loop), context, limits)

    async def has_begun(self) -> bool:
        """Wait for the first bytes of a request; False if there will be none."""
        seconds = self._limits.request_seconds if self._is_first else self._limits.idle_seconds
        self._is_first = False
        async with asyncio.timeout(seconds):
            self._arrived = await self._reader.read(_READ_BYTES)
        return bool(self._arrived)

    async def request(self, address: str) -> PageRequest:
        """All of the request that has begun. _BadRequest, TimeoutError, EOFError."""
        message = _RequestMessage(self._limits)
        async with asyncio.timeout(self._limits.request_seconds):
            message.feed(self._arrived)
            while not message.is_complete:
                if message.wants_word:
                    message.wants_word = False
                    self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                data = await self._reader.read(_READ_BYTES)
                if not data:
                    raise EOFError("in the middle of a request")
                message.feed(data)
        self.keeps_alive = message.keeps_alive
        return message.request(address)

    async def send(self, answer: PageAnswer, method: str, *, keeps_alive: bool) -> None:
        phrase = HTTPStatus(answer.status).phrase
        more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        head = (
            f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(answer.body)}\r\n{_SAFE}{more}{'' if keeps_alive else _LAST}\r\n"
        )
        self._writer.write(head.encode("latin-1") + (b"" if method == "HEAD" else answer.body))
        async with asyncio.timeout(self._limits.idle_seconds):
            await self._writer.drain()

    async def drain_input(self) -> None:
        """Read some of what is still coming: closing at once would take the answer away from under the visitor."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                for _ in range(_DRAIN_READS):
                    if not await self._reader.read(_READ_BYTES):
                        return

    def end(self) -> None:
        # What was said is sent; a farewell of TLS would be waited for.
        self._writer.transport.abort()


class _RequestMessage:
    """A request while it arrives, filled in by the parser."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._head_bytes = 0
        """What has arrived while the head was not complete."""
        self._reported_bytes = 0
        """What the parser has made of it: it reports a header when all of it is there."""
        self._url = b""
        self._lines: list[tuple[str, str]] = []
        self._body = bytearray()
        self._most_body = limits.body_bytes
        self._is_head_complete = False
        self._method = ""
        self.is_complete = False
        self.keeps_alive = False
        self.wants_word = False
        """Whether the visitor waits for `100 Continue` before it sends the body."""

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise _BadRequest(400, "BadRequest", "this is no request in HTTP/1.1") from error
        if not self._is_head_complete:
            self._head_bytes += len(data)
        if max(self._head_bytes, self._reported_bytes) > self._limits.head_bytes:
            raise _BadRequest(
                431, "RequestHeaderFieldsTooLarge", f"more than {self._limits.head_bytes} bytes of headers"
            )
        if len(self._body) > self._most_body:
            raise _BadRequest(413, "RequestEntityTooLarge", f"more than {self._most_body} bytes")

    def request(self, address: str) -> PageRequest:
        try:
            url = httptools.parse_url(self._url)
            query = (url.query or b"").decode("latin-1")
            fields = parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_QUERY_FIELDS)
        except (httptools.HttpParserError, ValueError) as error:
            raise _BadRequest(400, "BadRequest", "this is no URL that is served here") from error
        path = unquote((url.path or b"/").decode("latin-1"))
        return PageRequest(path, self._method, fields, dict(self._lines), bytes(self._body), self._lines, address)

    # --- called by the parser; what follows the request is not looked at ------------------------------------------

    def on_url(self, url: bytes) -> None:
        if not self.is_complete:
            self._url += url
            self._reported_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_complete:
            self._lines.append((name.decode("latin-1").lower(), value.decode("latin-1")))
            self._reported_bytes += len(name) + len(value)

    def on_headers_complete(self) -> None:
        if not self.is_complete:
            self._is_head_complete = True
            if self._url == _REVIEWS or self._url.startswith(_REVIEWS + b"?"):
                self._most_body = self._limits.review_bytes
            self._method = self._parser.get_method().decode("ascii")
            self.wants_word = dict(self._lines).get("expect", "").lower() == "100-continue"

    def on_body(self, body: bytes) -> None:
        if not self.is_complete and len(self._body) <= self._most_body:
            self._body += body

    def on_message_complete(self) -> None:
        # A second request before the first is answered: answered is the first, and then it is over.
        self.keeps_alive = not self.is_complete and bool(self._parser.should_keep_alive())
        self.is_complete = True


def _certificate(writer: asyncio.StreamWriter) -> ClientCertificate | None:
    secured = writer.get_extra_info("ssl_object")
    if secured is None or not secured.getpeercert():
        return None
    return ClientCertificate(secured.getpeercert(), secured.getpeercert(binary_form=True))
