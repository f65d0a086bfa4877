"""Everything that it takes to reach one API server, whatever the configuration came from."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.kube.credentials import Credentials
from pilotage.kube.tls import TlsSettings


@dataclass(frozen=True, slots=True)
class Connection:
    """`server` is a URL without a trailing slash; `origin` says in messages where all this was configured."""

    server: str
    tls: TlsSettings
    credentials: Credentials
    origin: str
    namespace: str = "default"
