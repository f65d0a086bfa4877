"""The authorities of client certificates that a cluster publishes for those who serve beside its API server.

They are looked up again and again: authorities are renewed, roles are granted late, and an API server that has just
come up has published nothing yet. What is published no more is trusted no more.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from msgspec import Struct

from pilotage.clock import Clock
from pilotage.kube.transport import Transport, TransportError
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.front_proxy import FrontProxy, published_proxy
from pilotage.serve.tls import CertificateError

log = logging.getLogger(__name__)

PUBLISHED: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_AGAIN_SECONDS: Final = 60.0


class LookupFailed(Exception):
    """The authorities for client certificates could not be read from the cluster."""


class Authorities(Struct, frozen=True):
    users: bytes = b""
    """PEM; empty if the cluster knows no client certificates."""
    proxy: FrontProxy | None = None


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


async def cluster_authorities(transport: Transport) -> Authorities:
    """What the cluster publishes, none if it publishes nothing; LookupFailed if it cannot be read."""
    try:
        answer = await transport.request("GET", PUBLISHED)
        if answer.status == 404:
            return Authorities()
        if answer.status >= 300:
            raise LookupFailed(f"{PUBLISHED}: HTTP {answer.status}")
        data = msgspec.json.decode(answer.body, type=_ConfigMap).data or {}
        return Authorities(data.get("client-ca-file", "").encode(), published_proxy(data))
    except (TransportError, msgspec.DecodeError) as error:
        raise LookupFailed(str(error)) from error


class PublishedAuthorities:
    """Lets the certificates of the cluster in, except where the flags name others."""

    def __init__(
        self,
        transport: Transport,
        certificates: ClientCertificates,
        *,
        with_users: bool = True,
        with_proxy: bool = True,
    ) -> None:
        self._transport = transport
        self._certificates = certificates
        self._with_users = with_users
        self._with_proxy = with_proxy
        self._trusted = Authorities()

    async def look_up(self) -> None:
        """Trust what is published now; LookupFailed or CertificateError if that is not to be had."""
        published = await cluster_authorities(self._transport)
        if self._with_users and published.users != self._trusted.users:
            self._certificates.trust_users(published.users)
        if self._with_proxy and published.proxy != self._trusted.proxy:
            self._certificates.trust_proxy(published.proxy)
        self._trusted = published

    async def follow(self, clock: Clock) -> None:
        """Look again now and then, until cancelled."""
        while True:
            await clock.sleep(_AGAIN_SECONDS)
            try:
                await self.look_up()
            except (LookupFailed, CertificateError) as error:
                log.debug("the cluster's client authorities cannot be read, those known stay in use: %s", error)
