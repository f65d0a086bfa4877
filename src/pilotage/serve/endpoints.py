"""The site on its ports, as the options say: HTTPS for everyone whom the API server lets in, HTTP for this machine."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from pilotage.clock import Clock
from pilotage.kube.transport import Transport
from pilotage.serve.access import OPEN_PATHS, DelegatedAuthorizer
from pilotage.serve.identity import CertificateReader, DelegatedAuthenticator
from pilotage.serve.listening import CannotListen, Doors, https, loopback_http
from pilotage.serve.site import GuardedSite, Pages
from pilotage.serve.tls import ServerTls

log = logging.getLogger(__name__)


class EndpointOptions(Struct, frozen=True):
    """A port that is 0 is not served."""

    host: str = "0.0.0.0"
    secure_port: int = 10259
    is_port_required: bool = False
    """The process ends if the secure port is taken. Otherwise it goes on without, and says so."""
    insecure_port: int = 0
    open_paths: Sequence[str] = OPEN_PATHS
    token_seconds: float = 10.0
    allowed_seconds: float = 10.0
    refused_seconds: float = 10.0


class Guard(Struct, frozen=True):
    """What a secure port needs: its certificate, and who is asked whose a token or a certificate is, and who may."""

    tls: ServerTls
    authentication: Transport
    authorization: Transport
    certificates: CertificateReader


@asynccontextmanager
async def endpoints(
    site: Pages, options: EndpointOptions, guard: Guard | None, doors: Doors
) -> AsyncIterator[list[str]]:
    """Serve until the context is left; yields the URLs. CannotListen if a required port is taken.

    Without a guard there is no secure port.
    """
    async with AsyncExitStack() as stack:
        urls = []
        if options.secure_port and guard is not None:
            try:
                guarded = _guarded(site, options, guard, doors.clock)
                entering = https(guarded, options.host, options.secure_port, guard.tls, doors)
                port = await stack.enter_async_context(entering)
                urls.append(f"https://{_shown(options.host)}:{port}")
            except CannotListen as error:
                if options.is_port_required:
                    raise
                log.warning("no health, metrics and debug pages: %s (--secure-port)", error.strerror)
        if options.insecure_port:
            port = await stack.enter_async_context(loopback_http(site, options.insecure_port, doors))
            urls.append(f"http://127.0.0.1:{port}")
        yield urls


def _guarded(site: Pages, options: EndpointOptions, guard: Guard, clock: Clock) -> GuardedSite:
    return GuardedSite(
        site,
        DelegatedAuthenticator(guard.authentication, clock, guard.certificates, options.token_seconds),
        DelegatedAuthorizer(
            guard.authorization,
            clock,
            open_paths=options.open_paths,
            allowed_seconds=options.allowed_seconds,
            refused_seconds=options.refused_seconds,
        ),
        clock,
    )


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
