"""A handler served by a real aiohttp server on loopback, plain or with TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from pilotage.kube.connection import Connection
from pilotage.kube.credentials import Credentials, StaticCredentials
from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.tls import TlsSettings

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL under which `handler` answers everything."""
    runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    try:
        yield f"{'https' if tls else 'http'}://localhost:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def transport_to(
    url: str,
    *,
    credentials: Credentials | None = None,
    tls: TlsSettings | None = None,
    settings: HttpSettings | None = None,
) -> AsyncIterator[HttpTransport]:
    connection = Connection(url, tls or TlsSettings(), credentials or StaticCredentials(), "kubeconfig /x, context 'y'")
    transport = HttpTransport(connection, settings)
    try:
        yield transport
    finally:
        await transport.close()


async def unused_url() -> str:
    """A URL on loopback where nobody listens."""
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return f"http://127.0.0.1:{port}"
