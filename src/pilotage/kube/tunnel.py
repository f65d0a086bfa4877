"""A way through a proxy: CONNECT for HTTP proxies, RFC 1928 and 1929 for SOCKS5. The proxy looks names up, not we.

Spoken on the bare socket, before TLS and HTTP begin on it. Nothing is read beyond the proxy's answer: the server does
not speak before it is spoken to.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

from pilotage.escaping import visible
from pilotage.kube.proxy import Proxy

_LONGEST_HEAD: Final = 16 * 1024
_LONGEST_REASON: Final = 100
_SOCKS: Final = 5
_NO_NAME, _BY_PASSWORD, _NO_METHOD = 0, 2, 0xFF
_DOMAIN, _IPV4, _IPV6 = 3, 1, 4
_SOCKS_PROBLEMS: Final = {
    1: "general failure",
    2: "connection not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


class ProxyProblem(OSError):
    """The proxy cannot be reached, or does not let us through."""


async def open_tunnel(sock: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """From now on the socket leads to this server. Raises ProxyProblem."""
    stream = _Stream(sock)
    if proxy.is_socks:
        await _open_socks(stream, proxy, host, port)
    else:
        await _open_http(stream, proxy, host, port)


class _Stream:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        try:
            await self._loop.sock_sendall(self._sock, data)
        except OSError as error:
            raise ProxyProblem(f"the proxy closed the connection: {error.strerror or error}") from error

    async def receive(self, most: int) -> bytes:
        try:
            data = await self._loop.sock_recv(self._sock, most)
        except OSError as error:
            raise ProxyProblem(f"the proxy closed the connection: {error.strerror or error}") from error
        if not data:
            raise ProxyProblem("the proxy closed the connection without an answer")
        return data

    async def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += await self.receive(count - len(data))
        return data


# --- HTTP -------------------------------------------------------------------------------------------------------------


async def _open_http(stream: _Stream, proxy: Proxy, host: str, port: int) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    await stream.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{proxy.authorization}\r\n".encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > _LONGEST_HEAD:
            raise ProxyProblem("what the proxy answers is too long")
        head += await stream.receive(_LONGEST_HEAD)
    protocol, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    code, _, reason = rest.partition(" ")
    if not protocol.startswith("HTTP/1.") or not code.isdigit():
        raise ProxyProblem("what answers there is no HTTP proxy")
    if not 200 <= int(code) < 300:
        way_out = "; check the name and the password in its address" if code == "407" else ""
        raise ProxyProblem(f"the proxy answered {code} {visible(reason[:_LONGEST_REASON])}".rstrip() + way_out)


# --- SOCKS5 -----------------------------------------------------------------------------------------------------------


async def _open_socks(stream: _Stream, proxy: Proxy, host: str, port: int) -> None:
    methods = [_NO_NAME, _BY_PASSWORD] if proxy.username else [_NO_NAME]
    await stream.send(bytes([_SOCKS, len(methods), *methods]))
    version, method = await stream.exactly(2)
    if version != _SOCKS:
        raise ProxyProblem("what answers there is no SOCKS5 proxy")
    if method == _BY_PASSWORD and proxy.username:
        await _sign_in(stream, proxy)
    elif method != _NO_NAME:
        raise ProxyProblem("the proxy asks for a name and a password; write them into its address")
    await stream.send(bytes([_SOCKS, 1, 0]) + _socks_address(host) + port.to_bytes(2, "big"))
    _, reply, _, kind = await stream.exactly(4)
    if reply:
        raise ProxyProblem(f"the proxy answered: {_SOCKS_PROBLEMS.get(reply, f'error {reply}')}")
    lengths = {_IPV4: 4, _IPV6: 16}
    bound = (await stream.exactly(1))[0] if kind == _DOMAIN else lengths.get(kind, 4)
    await stream.exactly(bound + 2)


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")
        return bytes([_DOMAIN, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed


async def _sign_in(stream: _Stream, proxy: Proxy) -> None:
    name, password = proxy.username.encode(), proxy.password.encode()
    if len(name) > 255 or len(password) > 255:
        raise ProxyProblem("name and password of a SOCKS5 proxy have 255 bytes at most")
    await stream.send(bytes([1, len(name)]) + name + bytes([len(password)]) + password)
    if (await stream.exactly(2))[1] != 0:
        raise ProxyProblem("the proxy does not accept the name and the password in its address")
