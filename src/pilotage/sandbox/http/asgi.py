"""The server on a socket: an ASGI application of our own, run by uvicorn inside the caller's event loop.

    async with serve(server, "127.0.0.1", 0) as serving:
        print(serving.url)

Only loopback addresses are served, and over plain HTTP only under their own names: a page in a browser may be led here
by a domain name of its own. The token comes as a header or, because kubectl sends no token over plain HTTP, as the
first part of the path (see `kubeconfig`). Watches, logs and commands may come over WebSockets (`web_socket`). A body
is read no further than the limit for objects (heads: see `guarded_protocol`); a watch ends when its client is gone.
uvicorn is used as a library: no signal handlers, no access log, no lifespan.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

import uvicorn

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.faults import ConnectionReset, Faults
from pilotage.sandbox.http.access import IMPERSONATE
from pilotage.sandbox.http.bodies import MOST_BYTES, check_size
from pilotage.sandbox.http.exchange import RemoteCommand, error_response
from pilotage.sandbox.http.guarded_protocol import GuardedProtocol
from pilotage.sandbox.http.kubeconfig import token_path
from pilotage.sandbox.http.routes.commands import SEPARATOR
from pilotage.sandbox.http.server import ApiServer, Request, ServerResponse, Watch
from pilotage.sandbox.http.tls import Tls
from pilotage.sandbox.http.web_socket import (
    send_command,
    send_log,
    send_plain,
    send_watch,
    token_among,
    web_socket_protocol,
)
from pilotage.tasks import sole_error

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HEADERS_READ: Final = {
    b"accept": "accept",
    b"authorization": "authorization",
    b"content-type": "content-type",
    b"content-length": "content-length",
    b"user-agent": "user-agent",
}
_UNKNOWN_AGENT: Final = "unknown"
_IMPERSONATE: Final = IMPERSONATE.encode()
_COMMAND: Final = "command"
"""A query parameter that is a list: every word of a command."""
_MOST_DISCARDED: Final = 64 * 1024 * 1024
_BACKLOG: Final = 2048
_KEEP_ALIVE_SECONDS: Final = 75
_SHUTDOWN_SECONDS: Final = 2
_TICKS_PER_LOOK: Final = 10
"""uvicorn has ten ticks a second."""


class PortInUse(OSError):
    """The port is taken by another process."""


class NotLoopback(ValueError):
    """The sandbox has one user and one token; it is not for the network."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that takes requests."""

    port: int
    url: str
    _stop: Callable[[], None]

    def stop(self) -> None:
        """End the watches and take no more requests; leaving the context waits for what is under way."""
        self._stop()


class AsgiApp:
    """ASGI on one side, `ApiServer` on the other."""

    def __init__(self, server: ApiServer, faults: Faults | None = None) -> None:
        self._server = server
        self._faults = faults
        self._prefix = token_path(server.token) if server.token else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._over_web_socket(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            headers = _headers(scope)
            body = await _body(scope["method"], headers, receive)
        except ApiError as error:
            await _send(send, error_response(error), closes=True)
            return
        try:
            answer = await self._answer(scope["method"], scope["path"], _query(scope["query_string"]), headers, body)
        except ConnectionReset:
            await _hang_up(receive, send)
            return
        if isinstance(answer, Watch):
            await _stream(receive, send, answer)
        else:
            await _send(send, answer)

    async def _over_web_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        subprotocols = scope["subprotocols"]
        try:
            headers = _headers(scope)
        except ApiError as error:
            await send_plain(send, error_response(error))
            return
        token = token_among(subprotocols)
        if token is not None:
            headers.setdefault("authorization", f"Bearer {token}")
        try:
            answer = await self._answer("GET", scope["path"], _query(scope["query_string"]), headers, b"")
        except ConnectionReset:
            await _hang_up(receive, send)
            return
        if isinstance(answer, Watch):
            await send_watch(receive, send, answer, subprotocols)
        elif isinstance(answer, RemoteCommand):
            await send_command(receive, send, answer, subprotocols, self._server.api.clock)
        elif answer.status == 200 and scope["path"].endswith("/log"):
            await send_log(send, answer, subprotocols)
        else:
            await send_plain(send, answer)

    async def _answer(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> ServerResponse | Watch:
        prefix = self._prefix
        if prefix and hmac.compare_digest(path[: len(prefix)].encode(), prefix.encode()):
            headers["authorization"] = f"Bearer {self._server.token}"
            path = path[len(prefix) :] or "/"
        respond = self._server.respond
        request = Request(method, path, query, headers, body)
        return await respond(request) if self._faults is None else await self._faults.around(request, respond)


@asynccontextmanager
async def serve(
    server: ApiServer,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: Tls | None = None,
    faults: Faults | None = None,
) -> AsyncIterator[Serving]:
    """Serve until the context is left; port 0 takes a free one. Raises PortInUse and NotLoopback."""
    listener = _listen(host, port)
    runner = _Runner(_config(AsgiApp(server, faults), tls))
    bound = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host

    def stop() -> None:
        server.watches.close()
        runner.should_exit = True

    with closing(listener), sole_error():
        async with asyncio.TaskGroup() as tasks:
            beat = tasks.create_task(server.run(), name="sandbox-timers")
            serving = tasks.create_task(runner.serve(sockets=[listener]), name="sandbox-http")
            await runner.is_ready.wait()
            try:
                yield Serving(bound, f"{'https' if tls else 'http'}://{shown}:{bound}", stop)
            finally:
                stop()
                await serving
                beat.cancel()


class _Runner(uvicorn.Server):
    """uvicorn without its signal handlers (the program has its own), and with word of when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_ready.set()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_LOOK == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, GuardedProtocol):
                    connection.give_up_if_late(now)
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: AsgiApp, tls: Tls | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws=web_socket_protocol,  # type: ignore[arg-type]
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ssl_certfile=None if tls is None else str(tls.certificate_file),
        ssl_keyfile=None if tls is None else str(tls.key_file),
    )


def _listen(host: str, port: int) -> socket.socket:
    address = "127.0.0.1" if host == "localhost" else host
    if not _is_loopback(address):
        raise NotLoopback(f"the sandbox serves loopback addresses only, not {host}; use 127.0.0.1")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With its protocol named: otherwise asyncio does not see that it is TCP, and leaves Nagle's delay on.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(error.errno, f"port {port} on {host} is in use: choose another one, or 0 for any") from None
        raise
    return listener


def _headers(scope: Scope) -> dict[str, str]:
    """Those that mean something here; ApiError for those that would mean something else than the client thinks."""
    headers = {"user-agent": _UNKNOWN_AGENT}
    for name, value in scope["headers"]:
        if name in _HEADERS_READ:
            headers[_HEADERS_READ[name]] = value.decode("latin-1")
        elif name == b"host":
            if scope["scheme"] in ("http", "ws") and not _is_own_name(value):
                raise ApiError(
                    403, "Forbidden", "this sandbox is called 127.0.0.1, [::1] or localhost: use one of these"
                )
        elif name.startswith(_IMPERSONATE):
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]}\n{text}" if key in headers else text
    return headers


@lru_cache(maxsize=64)
def _is_own_name(host: bytes) -> bool:
    """Whether a Host header names this machine, with any port."""
    name = re.sub(r":\d*$", "", host.decode("latin-1")).strip("[]")
    return name.lower() == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


async def _body(method: str, headers: MutableMapping[str, str], receive: Receive) -> bytes:
    """The whole body; ApiError 413 when it is too long."""
    if method in ("GET", "HEAD") and "content-length" not in headers:
        return b""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        check_size(len(body))
        return body
    parts, size = [body], len(body)
    while message.get("more_body") and size <= _MOST_DISCARDED:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        # Read on, keep nothing: most clients only listen to an answer when they have said everything.
        if size <= MOST_BYTES:
            parts.append(part)
    check_size(size)
    return b"".join(parts)


def _query(raw: bytes) -> dict[str, str]:
    query: dict[str, str] = {}
    if not raw:
        return query
    for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True):
        if name == _COMMAND and name in query:
            query[name] += SEPARATOR + value
        else:
            query.setdefault(name, value)
    return query


async def _send(send: Send, response: ServerResponse, *, closes: bool = False) -> None:
    headers = [(b"content-type", response.content_type.encode()), (b"content-length", b"%d" % len(response.body))]
    for name, value in response.headers:
        headers.append((name.encode("latin-1"), value.encode("utf-8")))
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


async def _hang_up(receive: Receive, send: Send) -> None:
    """Break the connection instead of answering. ASGI has no word for that; uvicorn's `send` knows its connection."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
    while not (await receive())["type"].endswith(".disconnect"):
        pass


async def _stream(receive: Receive, send: Send, watch: Watch) -> None:
    headers = [(b"content-type", watch.content_type.encode())]
    await send({"type": "http.response.start", "status": watch.status, "headers": headers})
    # Sent at once, so that the client knows that the watch stands before anything has happened.
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    async with asyncio.TaskGroup() as tasks:
        listener = tasks.create_task(_close_when_gone(receive, watch), name="sandbox-watch-client")
        async for chunk in watch:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        listener.cancel()
    await send({"type": "http.response.body", "body": b""})


async def _close_when_gone(receive: Receive, watch: Watch) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    watch.close()
