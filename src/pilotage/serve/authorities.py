"""The authorities of client certificates that a cluster publishes for those who serve beside its API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from pilotage.kube.transport import Transport, TransportError
from pilotage.serve.front_proxy import FrontProxy, published_proxy

PUBLISHED: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


class LookupFailed(Exception):
    """The authorities for client certificates could not be read from the cluster."""


@dataclass(frozen=True, slots=True)
class Authorities:
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
