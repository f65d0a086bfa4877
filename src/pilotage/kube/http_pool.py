"""Connections to one server: kept alive, reused, and no more at a time than the server should have to bear."""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from pilotage.kube.http_connection import HttpConnection

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens."""

    host: str
    port: int
    is_tls: bool
    shown: str
    """The address without what may be a secret: user part and path."""

    @classmethod
    def of(cls, server: str) -> Endpoint:
        """ValueError if it is no address of a server."""
        parts = urlsplit(server)
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise ValueError(f"{server!r} is no usable address")
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        authority = parts.netloc.rpartition("@")[2]
        return cls(parts.hostname, port, parts.scheme == "https", f"{parts.scheme}://{authority}")


class HttpPool:
    """Lends connections; whoever borrows one gives it back or closes it."""

    def __init__(self, endpoint: Endpoint, *, connections: int, idle_seconds: float) -> None:
        self._endpoint = endpoint
        self._idle_seconds = idle_seconds
        self._free = asyncio.Semaphore(connections)
        self._idle: list[tuple[HttpConnection, ssl.SSLContext | None]] = []
        self._lent: set[HttpConnection] = set()

    async def borrow(self, context: ssl.SSLContext | None, server_name: str | None) -> tuple[HttpConnection, bool]:
        """A connection, and whether it was used before. Raises OSError or ssl.SSLError if there is none to be had."""
        await self._free.acquire()
        try:
            connection = self._reusable(context)
            was_used = connection is not None
            if connection is None:
                connection = await connect(self._endpoint, context, server_name)
        except BaseException:
            self._free.release()
            raise
        self._lent.add(connection)
        return connection, was_used

    def give_back(self, connection: HttpConnection, context: ssl.SSLContext | None) -> None:
        self._lent.discard(connection)
        if connection.can_be_reused:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append((connection, context))
        else:
            connection.close()
        self._free.release()

    def close(self) -> None:
        for connection in (*(idle for idle, _ in self._idle), *self._lent):
            connection.close()
        self._idle.clear()

    def _reusable(self, context: ssl.SSLContext | None) -> HttpConnection | None:
        """The one used last, so that those beyond the usual need grow old and are closed."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection, made_with = self._idle.pop()
            # Another context means another identity: connections are never shared between the two.
            if made_with is context and not connection.is_closed and now - connection.idle_since < self._idle_seconds:
                return connection
            connection.close()
        return None


async def connect(endpoint: Endpoint, context: ssl.SSLContext | None, server_name: str | None) -> HttpConnection:
    """A new connection. Raises OSError (of the last address that was tried) or ssl.SSLError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    problem: OSError = OSError(f"{endpoint.host} has no address")
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
        name = (server_name or endpoint.host) if context is not None else None
        _, connection = await loop.create_connection(HttpConnection, sock=sock, ssl=context, server_hostname=name)
        return connection
    raise problem


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
