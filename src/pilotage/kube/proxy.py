"""Which proxy a server is reached through: the `proxy-url` of a kubeconfig, else the environment, as Go reads it.

`proxy-url` counts for whatever server it stands with. HTTPS_PROXY and HTTP_PROXY (by the server's scheme; upper case
first) do not count for this machine, nor for what NO_PROXY names:

    example.com       this host and all below it        10.0.0.0/8    addresses
    .example.com      all below it                      10.0.0.1      an address
    *.example.com     the same                          *             everything
    example.com:443   only on this port
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from pilotage.kube.errors import KubeconfigError
from pilotage.kube.secrets import HIDDEN, shown_address

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PROXY_PORTS: Final = {"http": 80, "socks5": 1080, "socks5h": 1080}
_VARIABLES: Final = {"http": ("HTTP_PROXY", "http_proxy"), "https": ("HTTPS_PROXY", "https_proxy")}
_NO_PROXY: Final = ("NO_PROXY", "no_proxy")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where a proxy listens, and as whom we come. Name and password stand in no message."""

    host: str
    port: int
    is_socks: bool
    shown: str
    origin: str
    """Where it was configured, for messages."""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str, origin: str) -> Proxy:
        """KubeconfigError if it is no proxy that can be used."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise _unusable(url, origin) from error
        if parts.scheme == "https":
            raise KubeconfigError(
                f"{origin}: {shown_address(url)}: proxies that are spoken to in TLS are not supported; write it as "
                "http:// (what is tunnelled through it is encrypted all the same)"
            )
        if parts.scheme not in _PROXY_PORTS or not parts.hostname:
            raise _unusable(url, origin)
        return cls(
            parts.hostname,
            port or _PROXY_PORTS[parts.scheme],
            parts.scheme != "http",
            shown_address(url),
            origin,
            unquote(parts.username or ""),
            unquote(parts.password or ""),
        )

    @property
    def authorization(self) -> str:
        """The header that authenticates us at an HTTP proxy; "" without a user name."""
        if not self.username:
            return ""
        pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return f"Proxy-Authorization: Basic {pair}\r\n"


@dataclass(frozen=True, slots=True)
class Proxies:
    """What was configured: a proxy by name, or an environment to look into."""

    explicit: Proxy | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def for_server(self, server: str) -> Proxy | None:
        """The proxy for the server with this address; KubeconfigError if the environment names one that is none."""
        if self.explicit is not None:
            return self.explicit
        parts = urlsplit(server)
        name, url = _first(self.environ, _VARIABLES.get(parts.scheme, ()))
        if not url or not _is_proxied(parts, _first(self.environ, _NO_PROXY)[1]):
            return None
        return Proxy.of(url if "://" in url else f"http://{url}", f"${name}")


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str]:
    return next(((name, value) for name in names if (value := environ.get(name, ""))), ("", ""))


def _unusable(url: str, origin: str) -> KubeconfigError:
    # An address that is none may have its password anywhere before the host.
    _, at, host = url.rpartition("@")
    shown = f"{HIDDEN}@{host}" if at else url
    return KubeconfigError(
        f"{origin}: {shown!r} is no usable proxy; write it as http://HOST:PORT or socks5://HOST:PORT"
    )


def _is_proxied(server: SplitResult, exceptions: str) -> bool:
    host, port = (server.hostname or "").lower(), server.port or _DEFAULT_PORTS[server.scheme]
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return False
    return not any(
        _matches(entry, host, port, address) for entry in map(str.strip, exceptions.lower().split(",")) if entry
    )


def _matches(entry: str, host: str, port: int, address: Address | None) -> bool:
    """Whether an entry of NO_PROXY means this server."""
    if entry == "*":
        return True
    try:
        network = ipaddress.ip_network(entry, strict=False) if "/" in entry else None
    except ValueError:
        return False
    if network is not None:
        return address is not None and address in network
    name, wanted_port = _split_port(entry)
    if wanted_port and wanted_port != str(port):
        return False
    named = _address(name)
    if named is not None:
        return address == named
    below = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(below) if below.startswith(".") else host == below or host.endswith(f".{below}")


def _split_port(entry: str) -> tuple[str, str]:
    """`host:port`, `[address]:port`, or one of these without a port; an IPv6 address may stand without brackets."""
    if _address(entry) is not None:
        return entry, ""
    host, colon, port = entry.rpartition(":")
    is_split = bool(colon) and port.isdigit()
    return (host if is_split else entry).strip("[]"), port if is_split else ""


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
