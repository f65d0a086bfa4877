"""The transport to a real API server: HTTP/1.1 with keep-alive on connections of our own (see http_connection.py).

Requests share a bounded pool of connections; every stream has a connection of its own, so that twenty watches never
starve a binding. A dead peer is found in two ways: TCP keep-alive notices a vanished machine within about a minute,
and a stream on which nothing arrives for `stale_seconds` is given up (watches ask the server to end them sooner, see
reflector.py). Compression is not asked for: within a cluster it costs both sides more time than it saves. Redirects
are not followed: they would carry the token away.

A 401 makes the credentials look for something fresher; if they find it the request is sent once more, which is safe
because a request that was refused had no effect.

A request may wait: for credentials, for a connection of the pool, for a TLS handshake. A caller that writes only under
some condition (such as holding a lease) gives a `fence`, which is asked when all of that is over and the bytes go out.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import quote, unquote, urlencode, urlsplit

from msgspec import Struct

from pilotage.kube.connection import Connection
from pilotage.kube.credentials import Identity
from pilotage.kube.errors import CredentialsError
from pilotage.kube.http_connection import ConnectionBroken, HttpConnection
from pilotage.kube.http_pool import Endpoint, HttpPool
from pilotage.kube.tls import TlsContexts
from pilotage.kube.transport import (
    Answered,
    NoIdentity,
    NotTrusted,
    Response,
    StreamRefused,
    TransportError,
    WireRequest,
)

_PATH_SAFE = "/%:@!$&'()*+,;=~"
_PLAIN_PATH = re.compile(r"[a-z0-9/.-]*", re.ASCII).fullmatch
"""Of a path in which nothing is to be quoted, as nearly all are."""
_REFUSAL_BODY_LIMIT = 1 << 20
_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_REPEATABLE = frozenset({"GET", "PUT", "DELETE"})

Fence = Callable[[], None]
"""Asked right before the bytes of a request other than GET go out; what it raises ends the request."""


class HttpSettings(Struct, frozen=True):
    """Limits of the transport; all durations in seconds."""

    connections: int = 64
    request_seconds: float = 60.0
    connect_seconds: float = 10.0
    stale_seconds: float = 270.0
    """A stream on which nothing arrives for so long is dead: longer than any watch lasts (see `reflector`)."""
    idle_seconds: float = 60.0
    gather_seconds: float = 0.0
    """After a piece of a stream no other is read for so long: what comes meanwhile costs little more than one."""
    user_agent: str = "pilotage"
    peer: str = "API server"
    """What the server is, for messages."""


class HttpTransport:
    """A `Transport` to the server of a `Connection`. Must be used within one event loop."""

    def __init__(
        self, connection: Connection, settings: HttpSettings | None = None, *, fence: Fence | None = None
    ) -> None:
        self._connection = connection
        self._fence = fence
        self._settings = settings or HttpSettings()
        parts = urlsplit(connection.server)
        self._endpoint = Endpoint.of(connection.server, connection.proxy)
        host = parts.netloc.rpartition("@")[2]
        self._prefix = f"http://{host}{parts.path}" if self._endpoint.is_forwarded else parts.path
        self._default_authorization = _basic(parts.username, parts.password)
        self._fixed_headers = (
            f"Host: {host}\r\n"
            "Accept: application/json\r\nAccept-Encoding: identity\r\n"
            f"User-Agent: {self._settings.user_agent}\r\n"
        )
        if connection.proxy is not None and self._endpoint.is_forwarded:
            self._fixed_headers += connection.proxy.authorization
        self._tls = TlsContexts(connection.tls, connection.origin)
        self._pool: HttpPool | None = None
        self._streams: set[HttpConnection] = set()
        self._is_closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float | None = None,
        most_bytes: int | None = None,
    ) -> Response:
        """`most_bytes` is how long an answer may be; a longer one is a TransportError."""
        target = self._target(path, query)
        seconds = timeout_seconds if timeout_seconds is not None else self._settings.request_seconds
        identity = await self._identity()
        message = self._message(method, target, identity, body, content_type)
        answer = await self._exchange(method, message, identity, seconds, most_bytes)
        if answer.status != 401:
            return answer
        fresh = await self._fresher(identity)
        if fresh is None:
            return answer
        message = self._message(method, target, fresh, body, content_type)
        return await self._exchange(method, message, fresh, seconds, most_bytes)

    @property
    def sends_together(self) -> bool:
        return True

    async def send_all(self, requests: Sequence[WireRequest]) -> list[Answered]:
        """In one piece on one connection (HTTP pipelining): the server answers one after the other."""
        try:
            identity = await self._identity()
            answers = await self._exchange_all(requests, identity)
            if not any(isinstance(answer, Response) and answer.status == 401 for answer in answers):
                return answers
            fresh = await self._fresher(identity)
        except TransportError as error:
            return [error] * len(requests)
        if fresh is None:
            return answers
        refused = [at for at, one in enumerate(answers) if isinstance(one, Response) and one.status == 401]
        try:
            again = await self._exchange_all([requests[at] for at in refused], fresh)
        except TransportError as error:
            again = [error] * len(refused)
        for at, answer in zip(refused, again, strict=True):
            answers[at] = answer
        return answers

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        target = self._target(path, query)
        identity = await self._identity()
        connection, status = await self._open_stream(target, identity)
        if status == 401 and (fresh := await self._fresher(identity)) is not None:
            self._end_stream(connection)
            connection, status = await self._open_stream(target, fresh)
        try:
            if not 200 <= status < 300:
                raise StreamRefused(await self._refusal(connection))
            yield _Chunks(connection, self._settings, self._failure)
        finally:
            # Closed, not reused: what a stream left unread must not reach the next user of the connection.
            self._end_stream(connection)

    async def close(self) -> None:
        self._is_closed = True
        if self._pool is not None:
            self._pool.close()
        for connection in list(self._streams):
            self._end_stream(connection)

    # --- exchanges ---------------------------------------------------------------------------------------------

    async def _exchange(
        self, method: str, message: bytes, identity: Identity, seconds: float, most_bytes: int | None
    ) -> Response:
        context, pool = self._context(identity), self._requests()
        connection, was_used = pool.take(context), True
        if connection is None:
            connection, was_used = await self._borrow(context, seconds)
        try:
            if self._fence is not None and method != "GET":
                self._fence()
            try:
                return await connection.exchange(message, seconds, most_bytes)
            except ConnectionBroken as broken:
                # The server may close a connection that idled just when it is used again.
                if not was_used or broken.was_answering or method not in _REPEATABLE:
                    raise
            connection.close()
        except (ConnectionBroken, TimeoutError, OSError) as error:
            connection.close()
            raise self._failure(error) from error
        except BaseException:
            connection.close()
            raise
        finally:
            pool.give_back(connection, context)
        return await self._exchange(method, message, identity, seconds, most_bytes)

    async def _exchange_all(self, requests: Sequence[WireRequest], identity: Identity) -> list[Answered]:
        messages = [
            self._message(one.method, self._target(one.path, None), identity, one.body, one.content_type)
            for one in requests
        ]
        context, pool, seconds = self._context(identity), self._requests(), self._settings.request_seconds
        connection = pool.take(context)
        if connection is None:
            connection, _ = await self._borrow(context, seconds)
        try:
            if self._fence is not None:
                self._fence()
            answers, error = await connection.exchange_all(messages, seconds)
        except BaseException:
            connection.close()
            raise
        finally:
            pool.give_back(connection, context)
        if error is None:
            return [*answers]
        connection.close()
        return [*answers, *[self._failure(error)] * (len(requests) - len(answers))]

    async def _borrow(self, context: ssl.SSLContext | None, seconds: float) -> tuple[HttpConnection, bool]:
        # Connecting gets less than the whole, so that its time-out is known as such: the request was then not sent.
        try:
            async with asyncio.timeout(min(self._settings.connect_seconds, seconds * 0.75)):
                return await self._requests().borrow(context, self._connection.tls.server_name)
        except (OSError, TimeoutError) as error:
            raise self._no_connection(error) from error

    async def _open_stream(self, target: str, identity: Identity) -> tuple[HttpConnection, int]:
        pool = self._requests()
        context = self._context(identity)
        message = self._message("GET", target, identity, None, "")
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                connection = await pool.connect(context, self._connection.tls.server_name)
        except (OSError, TimeoutError) as error:
            raise self._no_connection(error) from error
        self._streams.add(connection)
        try:
            async with asyncio.timeout(self._settings.request_seconds):
                return connection, await connection.open_stream(message)
        except (ConnectionBroken, TimeoutError, OSError) as error:
            self._end_stream(connection)
            raise self._failure(error) from error
        except BaseException:
            self._end_stream(connection)
            raise

    def _end_stream(self, connection: HttpConnection) -> None:
        self._streams.discard(connection)
        connection.close()

    async def _refusal(self, connection: HttpConnection) -> Response:
        try:
            async with asyncio.timeout(self._settings.request_seconds):
                return await connection.rest(_REFUSAL_BODY_LIMIT, self._settings.request_seconds)
        except (ConnectionBroken, TimeoutError, OSError) as error:
            raise self._failure(error) from error

    def _requests(self) -> HttpPool:
        if self._is_closed:
            raise RuntimeError("the transport is closed")
        if self._pool is None:
            settings = self._settings
            self._pool = HttpPool(self._endpoint, connections=settings.connections, idle_seconds=settings.idle_seconds)
        return self._pool

    # --- identity ----------------------------------------------------------------------------------------------

    async def _identity(self) -> Identity:
        try:
            return await self._connection.credentials.identity()
        except CredentialsError as error:
            raise NoIdentity(str(error), sent=False) from error

    async def _fresher(self, refused: Identity) -> Identity | None:
        """Another identity than the refused one, None if there is none to be had."""
        self._connection.credentials.refused()
        fresh = await self._identity()
        return fresh if fresh != refused else None

    def _context(self, identity: Identity) -> ssl.SSLContext | None:
        if not self._endpoint.is_tls:
            return None
        try:
            return self._tls.context_for(identity)
        except CredentialsError as error:
            raise NoIdentity(str(error), sent=False) from error

    # --- messages ----------------------------------------------------------------------------------------------

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        is_plain = _PLAIN_PATH(path) is not None
        target = self._prefix + (path if is_plain else quote(path, safe=_PATH_SAFE))
        return f"{target}?{urlencode(query)}" if query else target

    def _message(self, method: str, target: str, identity: Identity, body: bytes | None, content_type: str) -> bytes:
        authorization = identity.authorization or self._default_authorization
        head = f"{method} {target} HTTP/1.1\r\n{self._fixed_headers}"
        if authorization is not None:
            head += f"Authorization: {authorization}\r\n"
        if body is None:
            return f"{head}\r\n".encode("latin-1")
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    def _no_connection(self, error: Exception) -> TransportError:
        """One line that names the server, what happened and where the address was configured."""
        server, origin, peer = self._endpoint.shown, self._connection.origin, self._settings.peer
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = (error.verify_message or _one_line(error)).rstrip(".")
            is_misnamed = error.verify_code in _OTHER_NAME
            way_out = "server and tls-server-name" if is_misnamed else "certificate-authority"
            problem = f"its certificate is not trusted ({reason}); check {way_out}"
            return NotTrusted(f"{peer} {server}: {problem} ({origin})", sent=False)
        proxy = self._endpoint.proxy
        if proxy is not None:
            text = f"cannot reach the {peer} {server} through the proxy {proxy.shown}: {_connect_problem(error)}"
            return TransportError(f"{text} ({proxy.origin}; {origin})", sent=False)
        text = f"cannot reach the {peer} {server}: {_connect_problem(error)}"
        return TransportError(f"{text}; is it running and is the address right? ({origin})", sent=False)

    def _failure(self, error: Exception) -> TransportError:
        server = self._endpoint.shown
        if isinstance(error, TimeoutError):
            return TransportError(f"{self._settings.peer} {server} did not answer in time", sent=True)
        where = " in the middle of an answer" if getattr(error, "was_answering", False) else ""
        return TransportError(f"the connection to {server} broke{where}: {_one_line(error)}", sent=True)


class _Chunks:
    """What has arrived, as it arrives."""

    def __init__(
        self, connection: HttpConnection, settings: HttpSettings, failure: Callable[[Exception], TransportError]
    ) -> None:
        self._connection = connection
        self._stale_seconds = settings.stale_seconds
        self._gather_seconds = settings.gather_seconds
        self._failure = failure

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._connection.chunk(self._stale_seconds, self._gather_seconds)
        except (ConnectionBroken, TimeoutError, OSError) as error:
            raise self._failure(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk


def _basic(username: str | None, password: str | None) -> str | None:
    """An address may carry a name and a password."""
    if not username:
        return None
    pair = f"{unquote(username)}:{unquote(password or '')}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _connect_problem(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return error.strerror or _one_line(error)
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, ConnectionResetError) and not error.errno:
        return "it closed the connection at once, as a server does that does not speak TLS"
    if isinstance(error, TimeoutError) and error.__class__ is TimeoutError and not error.errno:
        return "no connection in time"
    number = getattr(error, "errno", None)
    # The event loop's own text repeats the address.
    return os.strerror(number) if number else _one_line(error)


def _one_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__
