"""The transport to a real API server: HTTP/1.1 with keep-alive through aiohttp.

Requests share a bounded pool of connections; every stream has a connection of its own, so that twenty watches never
starve a binding. A dead peer is found in two ways: TCP keep-alive notices a vanished machine within about a minute,
and a stream on which nothing arrives for `stale_seconds` is given up (watches ask the server to end them sooner, see
reflector.py). Compression is not asked for: within a cluster it costs both sides more time than it saves.

A 401 makes the credentials look for something fresher; if they find it the request is sent once more, which is safe
because a request that was refused had no effect.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import yarl

from pilotage.kube.connection import Connection
from pilotage.kube.credentials import Identity
from pilotage.kube.errors import CredentialsError
from pilotage.kube.tls import TlsContexts
from pilotage.kube.transport import Response, StreamRefused, TransportError

_PATH_SAFE = "/%:@!$&'()*+,;=~"
_REFUSAL_BODY_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of the transport; all durations in seconds."""

    connections: int = 64
    request_seconds: float = 60.0
    connect_seconds: float = 10.0
    stale_seconds: float = 300.0
    idle_seconds: float = 60.0
    read_buffer_bytes: int = 1 << 18
    user_agent: str = "pilotage"


class HttpTransport:
    """A `Transport` to the server of a `Connection`. Must be used within one event loop."""

    def __init__(self, connection: Connection, settings: HttpSettings | None = None) -> None:
        self._connection = connection
        self._settings = settings or HttpSettings()
        self._is_tls = connection.server.startswith("https://")
        # Path and user part of an address may hold a secret; neither helps to find the server.
        self._shown_server = str(yarl.URL(connection.server).origin())
        self._tls = TlsContexts(connection.tls, connection.origin)
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
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
    ) -> Response:
        url = self._url(path, query)
        seconds = timeout_seconds if timeout_seconds is not None else self._settings.request_seconds
        # Connecting gets less than the whole, so that its time-out is told apart: the request was then not sent.
        timeout = aiohttp.ClientTimeout(total=seconds, connect=min(self._settings.connect_seconds, seconds * 0.75))
        headers = {"Content-Type": content_type} if body is not None else {}
        identity = await self._identity()
        answer = await self._exchange(method, url, identity, headers=headers, data=body, timeout=timeout)
        if answer.status != 401:
            return answer
        fresh = await self._fresher(identity)
        if fresh is None:
            return answer
        return await self._exchange(method, url, fresh, headers=headers, data=body, timeout=timeout)

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        url = self._url(path, query)
        identity = await self._identity()
        response = await self._open_stream(url, identity)
        if response.status == 401 and (fresh := await self._fresher(identity)) is not None:
            response.close()
            response = await self._open_stream(url, fresh)
        try:
            if not 200 <= response.status < 300:
                raise StreamRefused(await self._refusal(response))
            yield _Chunks(response.content, self._failure)
        finally:
            # Closed, not released: what a stream left unread must not reach the next user of the connection.
            response.close()

    async def close(self) -> None:
        self._is_closed = True
        for session in (self._requests, self._streams):
            if session is not None:
                await session.close()

    async def _exchange(self, method: str, url: yarl.URL, identity: Identity, **options: Any) -> Response:
        if self._requests is None:
            self._requests = self._session(
                aiohttp.TCPConnector(
                    limit=self._settings.connections,
                    keepalive_timeout=self._settings.idle_seconds,
                    socket_factory=_kept_alive_socket,
                )
            )
        try:
            async with self._requests.request(
                method, url, allow_redirects=False, **self._identified(identity, options)
            ) as response:
                return await _complete(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error) from error

    async def _open_stream(self, url: yarl.URL, identity: Identity) -> aiohttp.ClientResponse:
        if self._streams is None:
            self._streams = self._session(
                aiohttp.TCPConnector(limit=0, force_close=True, socket_factory=_kept_alive_socket)
            )
        timeout = aiohttp.ClientTimeout(
            total=None, connect=self._settings.connect_seconds, sock_read=self._settings.stale_seconds
        )
        options = self._identified(identity, {"headers": {}, "timeout": timeout})
        try:
            return await self._streams.get(url, allow_redirects=False, **options)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error) from error

    async def _refusal(self, response: aiohttp.ClientResponse) -> Response:
        try:
            async with asyncio.timeout(self._settings.request_seconds):
                body = await response.content.read(_REFUSAL_BODY_LIMIT)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error) from error
        return Response(response.status, _headers(response), body)

    async def _identity(self) -> Identity:
        try:
            return await self._connection.credentials.identity()
        except CredentialsError as error:
            raise TransportError(str(error), sent=False) from error

    async def _fresher(self, refused: Identity) -> Identity | None:
        """Another identity than the refused one, None if there is none to be had."""
        self._connection.credentials.refused()
        fresh = await self._identity()
        return fresh if fresh != refused else None

    def _identified(self, identity: Identity, options: dict[str, Any]) -> dict[str, Any]:
        headers = options["headers"]
        if identity.authorization is not None:
            headers = {**headers, "Authorization": identity.authorization}
        identified = {**options, "headers": headers}
        if self._is_tls:
            try:
                identified["ssl"] = self._tls.context_for(identity)
            except CredentialsError as error:
                raise TransportError(str(error), sent=False) from error
            identified["server_hostname"] = self._connection.tls.server_name
        return identified

    def _session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        if self._is_closed:
            raise RuntimeError("the transport is closed")
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": self._settings.user_agent,
            },
            read_bufsize=self._settings.read_buffer_bytes,
        )

    def _url(self, path: str, query: Mapping[str, str] | None) -> yarl.URL:
        target = self._connection.server + quote(path, safe=_PATH_SAFE)
        if query:
            target = f"{target}?{urlencode(query)}"
        return yarl.URL(target, encoded=True)

    def _failure(self, error: Exception) -> TransportError:
        """One line that names the server, what happened and where the address was configured."""
        server, origin = self._shown_server, self._connection.origin
        match error:
            case aiohttp.ClientConnectorCertificateError():
                problem = f"its certificate is not trusted ({_certificate_problem(error)}); check certificate-authority"
                return TransportError(f"API server {server}: {problem} ({origin})", sent=False)
            case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
                problem = _connect_problem(error)
                text = f"cannot reach the API server {server}: {problem}; is it running and is the address right?"
                return TransportError(f"{text} ({origin})", sent=False)
            case aiohttp.InvalidURL():
                return TransportError(f"{server!r} is no usable address ({origin})", sent=False)
            case TimeoutError():
                return TransportError(f"API server {server} did not answer in time", sent=True)
            case aiohttp.ClientPayloadError():
                return TransportError(f"the connection to {server} broke in the middle of an answer", sent=True)
            case _:
                return TransportError(f"the connection to {server} broke: {_one_line(error)}", sent=True)


class _Chunks:
    """What has arrived, as it arrives."""

    def __init__(self, content: aiohttp.StreamReader, failure: Callable[[Exception], TransportError]) -> None:
        self._content = content
        self._failure = failure

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk


async def _complete(response: aiohttp.ClientResponse) -> Response:
    return Response(response.status, _headers(response), await response.read())


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _kept_alive_socket(info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not every system lets the intervals be chosen.
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _connect_problem(error: Exception) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "no connection in time"
    cause = getattr(error, "os_error", error)
    if isinstance(cause, ssl.SSLError):
        return f"TLS: {cause.reason or cause}"
    number = getattr(cause, "errno", None)
    if number is not None and number > 0:
        # The event loop's own text repeats the address; negative numbers are those of the name resolver.
        return os.strerror(number)
    return getattr(cause, "strerror", None) or _one_line(cause)


def _certificate_problem(error: aiohttp.ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    return getattr(cause, "verify_message", None) or _one_line(cause)


def _one_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__
