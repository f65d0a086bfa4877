"""The site on sockets: HTTPS for the network, and plain HTTP for the same machine if that is asked for."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from pilotage.clock import Clock
from pilotage.observe.instruments import Counter
from pilotage.serve.http_server import Answerer, Context, HttpServer
from pilotage.serve.identity import ClientCertificate
from pilotage.serve.page import PageAnswer, PageRequest, error_answer
from pilotage.serve.site import GuardedSite, Pages
from pilotage.serve.tls import ServerTls
from pilotage.serve.visitors import ServerLimits

_REFRESH_SECONDS: Final = 60.0
_BACKLOG: Final = 512
_MOST_FILES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Doors:
    """What visitors may take, and where it is counted that they took too much."""

    clock: Clock
    limits: ServerLimits = field(default_factory=ServerLimits)
    closed: Counter = field(default_factory=lambda: Counter("reason"))


class CannotListen(OSError):
    """The port is taken or may not be used; the text says which."""


def raise_file_limit() -> None:
    """As many open files as the system lets us have, within reason: every connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@asynccontextmanager
async def https(site: GuardedSite, host: str, port: int, tls: ServerTls, doors: Doors) -> AsyncIterator[int]:
    """Serve until the context is left; yields the port (0 takes a free one). CannotListen if it is taken."""
    async with _listening(site.answer, host, port, lambda: tls.context, doors) as bound, asyncio.TaskGroup() as tasks:
        refreshing = tasks.create_task(_refresh(tls, doors.clock), name="certificate refresh")
        try:
            yield bound
        finally:
            refreshing.cancel()


@asynccontextmanager
async def loopback_http(site: Pages, port: int, doors: Doors) -> AsyncIterator[int]:
    """The same without TLS and without questions, for this machine only."""

    async def answer(request: PageRequest, certificate: ClientCertificate | None) -> PageAnswer:
        host = request.headers.get("host", "")
        if not _is_this_machine(host):
            # A browser that was led here by a foreign name.
            return error_answer(403, "Forbidden", "this port answers for localhost only; ask it under that name")
        return await site.reply(request)

    async with _listening(answer, "127.0.0.1", port, lambda: None, doors) as bound:
        yield bound


@asynccontextmanager
async def _listening(answer: Answerer, host: str, port: int, context: Context, doors: Doors) -> AsyncIterator[int]:
    listening = _socket(host, port)
    server = HttpServer(answer, context, doors.limits, doors.closed, doors.clock)
    with listening:
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(server.serve(listening), name="visitors")
            try:
                yield listening.getsockname()[1]
            finally:
                serving.cancel()


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise _cannot_listen(error, host, port) from error
    listening.setblocking(False)
    return listening


def _is_this_machine(host: str) -> bool:
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.rpartition(":")[0] or host
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _cannot_listen(error: OSError, host: str, port: int) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(error.errno, f"port {port} on {host} is in use; choose another one, or 0 for none")
    reason = (error.strerror or str(error)).lower()
    return CannotListen(error.errno or 0, f"cannot listen on {host} port {port}: {reason}")


async def _refresh(tls: ServerTls, clock: Clock) -> None:
    while True:
        await clock.sleep(_REFRESH_SECONDS)
        tls.refresh()
