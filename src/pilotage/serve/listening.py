"""The site on sockets: HTTPS for the network, and plain HTTP for the same machine if that is asked for.

aiohttp does the HTTP; it is there for the client already, and it tells which certificate a client has shown.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from pilotage.clock import Clock
from pilotage.serve.identity import ClientCertificate
from pilotage.serve.page import PageAnswer, PageRequest
from pilotage.serve.site import GuardedSite, Site
from pilotage.serve.tls import ServerTls

_REFRESH_SECONDS: Final = 60.0
_SHUTDOWN_SECONDS: Final = 1.0
_MOST_BYTES: Final = 1 << 16
_SAFE: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}

Answerer = Callable[[PageRequest, ClientCertificate | None], Awaitable[PageAnswer]]


class CannotListen(OSError):
    """The port is taken or may not be used; the text says which."""


@asynccontextmanager
async def https(site: GuardedSite, host: str, port: int, tls: ServerTls, clock: Clock) -> AsyncIterator[int]:
    """Serve until the context is left; yields the port (0 takes a free one). CannotListen if it is taken."""
    async with _listening(site.answer, host, port, tls) as bound, asyncio.TaskGroup() as tasks:
        refreshing = tasks.create_task(_refresh(tls, clock), name="certificate refresh")
        try:
            yield bound
        finally:
            refreshing.cancel()


@asynccontextmanager
async def loopback_http(site: Site, port: int) -> AsyncIterator[int]:
    """The same without TLS and without questions, for this machine only."""

    async def answer(request: PageRequest, certificate: ClientCertificate | None) -> PageAnswer:
        return site.answer(request)

    async with _listening(answer, "127.0.0.1", port, None) as bound:
        yield bound


@asynccontextmanager
async def _listening(answer: Answerer, host: str, port: int, tls: ServerTls | None) -> AsyncIterator[int]:
    runner = web.ServerRunner(web.Server(_handler(answer), access_log=None), shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=None if tls is None else tls.context)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        raise _cannot_listen(error, host, port) from error
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _handler(answer: Answerer) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read(_MOST_BYTES) if request.can_read_body else b""
        lines = [(name.lower(), value) for name, value in request.headers.items()]
        asked = PageRequest(
            path=request.path,
            method=request.method,
            query={name: request.query.getall(name) for name in request.query},
            headers=dict(lines),
            body=body,
            lines=lines,
        )
        found = await answer(asked, _certificate(request))
        return web.Response(status=found.status, body=found.body, headers={**_SAFE, "Content-Type": found.content_type})

    return handle


def _certificate(request: web.BaseRequest) -> ClientCertificate | None:
    transport = request.transport
    secured = None if transport is None else transport.get_extra_info("ssl_object")
    if secured is None or not secured.getpeercert():
        return None
    return ClientCertificate(secured.getpeercert(), secured.getpeercert(binary_form=True))


def _cannot_listen(error: OSError, host: str, port: int) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(error.errno, f"port {port} on {host} is in use; choose another one, or 0 for none")
    reason = (error.strerror or str(error)).lower()
    return CannotListen(error.errno or 0, f"cannot listen on {host} port {port}: {reason}")


async def _refresh(tls: ServerTls, clock: Clock) -> None:
    while True:
        await clock.sleep(_REFRESH_SECONDS)
        tls.refresh()
