"""Everything that it takes to reach one API server, whatever the configuration came from."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pilotage.kube.credentials import Credentials
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.proxy import Proxies, Proxy
from pilotage.kube.secrets import shown_address
from pilotage.kube.tls import TlsSettings


@dataclass(frozen=True, slots=True)
class Connection:
    """`server` is a URL without a trailing slash; `origin` says in messages where all this was configured.

    KubeconfigError if a token or a password would cross the network in the clear, or if a proxy cannot be used.
    """

    server: str = field(repr=False)
    tls: TlsSettings
    credentials: Credentials
    origin: str
    namespace: str = "default"
    proxies: Proxies = field(default_factory=Proxies)

    def __post_init__(self) -> None:
        address = urlsplit(self.server)
        has_secret = self.credentials.are_secret or bool(address.username)
        proxy = self.proxy
        if address.scheme == "http" and has_secret and proxy is not None:
            raise KubeconfigError(
                f"{self.origin}: {self.shown} is plain HTTP: the proxy {proxy.shown} and everyone behind it could "
                "read the token or password; write the server as https://, or reach it without a proxy (NO_PROXY)"
            )
        if address.scheme == "http" and has_secret and not is_loopback(address.hostname or ""):
            raise KubeconfigError(
                f"{self.origin}: {self.shown} is plain HTTP: everyone on the way could read the token or password; "
                "write the server as https://, or use a user without them (only a server at 127.0.0.1, [::1] or "
                "localhost gets them over HTTP)"
            )

    @property
    def proxy(self) -> Proxy | None:
        """What the server is reached through; KubeconfigError if what was configured is no proxy."""
        return self.proxies.for_server(self.server)

    @property
    def shown(self) -> str:
        """The address for messages, without what may be a secret."""
        return shown_address(self.server)


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
