"""The site on its ports, as the options say: HTTPS for everybody whom the API server lets in, HTTP for this machine."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from pilotage.clock import Clock
from pilotage.kube.transport import Transport, TransportError
from pilotage.serve.access import OPEN_PATHS, DelegatedAuthorizer
from pilotage.serve.identity import DelegatedAuthenticator
from pilotage.serve.listening import CannotListen, https, loopback_http
from pilotage.serve.site import GuardedSite, Site
from pilotage.serve.tls import ServerTls

log = logging.getLogger(__name__)

_CLIENT_CA: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class EndpointOptions:
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


class LookupFailed(Exception):
    """The authority for client certificates could not be read from the cluster."""


@dataclass(frozen=True, slots=True)
class Reviewers:
    """Who is asked whose a token is, and who may see what."""

    authentication: Transport
    authorization: Transport


@asynccontextmanager
async def endpoints(
    site: Site, options: EndpointOptions, tls: ServerTls, reviewers: Reviewers, clock: Clock
) -> AsyncIterator[list[str]]:
    """Serve until the context is left; yields the URLs. CannotListen if a required port is taken."""
    guarded = GuardedSite(
        site,
        DelegatedAuthenticator(reviewers.authentication, clock, options.token_seconds),
        DelegatedAuthorizer(
            reviewers.authorization,
            clock,
            open_paths=options.open_paths,
            allowed_seconds=options.allowed_seconds,
            refused_seconds=options.refused_seconds,
        ),
    )
    async with AsyncExitStack() as stack:
        urls = []
        if options.secure_port:
            try:
                entering = https(guarded, options.host, options.secure_port, tls, clock)
                port = await stack.enter_async_context(entering)
                urls.append(f"https://{_shown(options.host)}:{port}")
            except CannotListen as error:
                if options.is_port_required:
                    raise
                log.warning("no health, metrics and debug pages: %s (--secure-port)", error.strerror)
        if options.insecure_port:
            port = await stack.enter_async_context(loopback_http(site, options.insecure_port))
            urls.append(f"http://127.0.0.1:{port}")
        yield urls


async def cluster_client_authority(transport: Transport) -> bytes:
    """The authority that signs the client certificates of this cluster (PEM); LookupFailed if it cannot be read."""
    try:
        answer = await transport.request("GET", _CLIENT_CA)
        if answer.status == 404:
            return b""
        if answer.status >= 300:
            raise LookupFailed(f"{_CLIENT_CA}: HTTP {answer.status}")
        data = msgspec.json.decode(answer.body).get("data") or {}
    except (TransportError, msgspec.DecodeError) as error:
        raise LookupFailed(str(error)) from error
    return str(data.get("client-ca-file", "")).encode()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
