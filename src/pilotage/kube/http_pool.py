"""Connections to one server: kept alive, reused, and no more at a time than the server should have to bear."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from msgspec import Struct

from pilotage.kube.http_connection import READ_BYTES, HttpConnection
from pilotage.kube.proxy import Proxy
from pilotage.kube.secrets import shown_address, without_user_part
from pilotage.kube.tunnel import ProxyProblem, open_tunnel

_DEFAULT_PORTS = {"http": 80, "https": 443}


class Endpoint(Struct, frozen=True):
    """Where a server listens."""

    host: str
    port: int
    is_tls: bool
    shown: str
    """The address without what may be a secret: user part and path."""
    proxy: Proxy | None = None

    @classmethod
    def of(cls, server: str, proxy: Proxy | None = None) -> Endpoint:
        """ValueError if it is no address of a server."""
        parts = urlsplit(server)
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise ValueError(f"{without_user_part(server)!r} is no usable address")
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        return cls(parts.hostname, port, parts.scheme == "https", shown_address(server), proxy)

    @property
    def is_forwarded(self) -> bool:
        """Whether plain HTTP requests are handed to a proxy, which sends them on."""
        return self.proxy is not None and not self.proxy.is_socks and not self.is_tls


class HttpPool:
    """Lends connections; the borrower gives it back or closes it."""

    def __init__(self, endpoint: Endpoint, *, connections: int, idle_seconds: float) -> None:
        self._endpoint = endpoint
        self._idle_seconds = idle_seconds
        self._free = connections
        """How many more may be lent."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle: deque[tuple[HttpConnection, ssl.SSLContext | None]] = deque()
        """The one used last at the right."""
        self._closing: asyncio.TimerHandle | None = None
        self._lent: set[HttpConnection] = set()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._loop = asyncio.get_running_loop()

    def take(self, context: ssl.SSLContext | None) -> HttpConnection | None:
        """A connection that was used before, if there is one at once."""
        if not self._free:
            return None
        connection = self._reusable(context)
        if connection is not None:
            self._free -= 1
            self._lent.add(connection)
        return connection

    async def borrow(self, context: ssl.SSLContext | None, server_name: str | None) -> tuple[HttpConnection, bool]:
        """A connection, and whether it was used before. Raises OSError or ssl.SSLError if there is none to be had."""
        await self._turn()
        try:
            connection = self._reusable(context)
            was_used = connection is not None
            if connection is None:
                connection = await self.connect(context, server_name)
        except BaseException:
            self._let_next()
            raise
        self._lent.add(connection)
        return connection, was_used

    def give_back(self, connection: HttpConnection, context: ssl.SSLContext | None) -> None:
        self._lent.discard(connection)
        if connection.can_be_reused:
            connection.idle_since = self._loop.time()
            self._idle.append((connection, context))
            if self._closing is None:
                self._close_old()
        else:
            connection.close()
        self._let_next()

    async def _turn(self) -> None:
        """Wait until one more may be lent; it is the caller's then."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._let_next()
            raise

    def _let_next(self) -> None:
        """Whoever waits longest is next; nobody who comes later overtakes."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def close(self) -> None:
        for connection in (*(idle for idle, _ in self._idle), *self._lent):
            connection.close()
        self._idle.clear()
        if self._closing is not None:
            self._closing.cancel()

    def _reusable(self, context: ssl.SSLContext | None) -> HttpConnection | None:
        """The one used last, so that those beyond the usual need grow old and are closed."""
        now = self._loop.time()
        while self._idle:
            connection, made_with = self._idle.pop()
            # Another context means another identity: connections are never shared between the two.
            if made_with is context and not connection.is_closed and now - connection.idle_since < self._idle_seconds:
                return connection
            connection.close()
        return None

    def _close_old(self) -> None:
        """Close what has idled for too long, and come back when the next one will have: each takes 300 KB with TLS."""
        loop = self._loop
        while self._idle and loop.time() - self._idle[0][0].idle_since >= self._idle_seconds:
            self._idle.popleft()[0].close()
        due = self._idle[0][0].idle_since + self._idle_seconds if self._idle else None
        self._closing = None if due is None else loop.call_at(due, self._close_old)

    async def connect(self, context: ssl.SSLContext | None, server_name: str | None) -> HttpConnection:
        """A new connection that is not the pool's. Raises OSError (of the last address tried) or ssl.SSLError."""
        return await _connect(self._endpoint, context, server_name, lambda: HttpConnection(self._buffer))


async def _connect(
    endpoint: Endpoint,
    context: ssl.SSLContext | None,
    server_name: str | None,
    make: Callable[[], HttpConnection],
) -> HttpConnection:
    sock = await (_reach(endpoint.host, endpoint.port) if endpoint.proxy is None else _pass(endpoint, endpoint.proxy))
    name = (server_name or endpoint.host) if context is not None else None
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(make, sock=sock, ssl=context, server_hostname=name)
    return connection


async def _reach(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in found:
        sock = _kept_alive_socket(family, kind, protocol)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            problem = error
            continue
        except BaseException:
            sock.close()
            raise
        return sock
    raise problem


async def _pass(endpoint: Endpoint, proxy: Proxy) -> socket.socket:
    """A socket that leads to the server through the proxy, or to the proxy if that forwards requests."""
    try:
        sock = await _reach(proxy.host, proxy.port)
    except OSError as error:
        # The event loop's own text repeats the address.
        text = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise ProxyProblem(f"no connection to the proxy: {text}") from error
    if endpoint.is_forwarded:
        return sock
    try:
        await open_tunnel(sock, proxy, endpoint.host, endpoint.port)
    except BaseException:
        sock.close()
        raise
    return sock


def _kept_alive_socket(family: int, kind: int, protocol: int) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not every system lets the intervals be chosen.
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
