"""Proxies: which one is used for which server, and that requests really go through it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from aiohttp import web

from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.proxy import Proxies, Proxy
from pilotage.kube.source import Inline
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import TransportError
from pilotage.testing import VirtualClock

from .little_proxy import LittleProxy
from .loopback import served

SECRET = "Tr0ub4dor"


# --- which proxy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("no_proxy", "server", "is_proxied"),
    [
        ("", "https://api.example.com", True),
        ("", "https://localhost:6443", False),
        ("", "https://127.0.0.5:6443", False),
        ("", "https://[::1]:6443", False),
        ("*", "https://api.example.com", False),
        ("example.com", "https://example.com", False),
        ("example.com", "https://api.example.com", False),
        ("example.com", "https://badexample.com", True),
        (".example.com", "https://api.example.com", False),
        (".example.com", "https://example.com", True),
        ("*.example.com", "https://api.example.com", False),
        ("*.example.com", "https://example.com", True),
        ("EXAMPLE.com", "https://API.Example.COM", False),
        ("a.b, example.com ,c", "https://api.example.com", False),
        ("example.com:6443", "https://example.com:6443", False),
        ("example.com:6443", "https://example.com", True),
        ("example.com:443", "https://example.com", False),
        ("10.0.0.0/8", "https://10.3.4.5", False),
        ("10.0.0.0/8", "https://11.3.4.5", True),
        ("10.0.0.0/8", "https://api.example.com", True),
        ("10.3.4.5", "https://10.3.4.5:6443", False),
        ("10.3.4.5:6443", "https://10.3.4.5:6443", False),
        ("10.3.4.5:6443", "https://10.3.4.5", True),
        ("10.3.4", "https://10.3.4.5", True),
        ("fd00::/8", "https://[fd00::1]:6443", False),
        ("fd00::1", "https://[fd00::1]:6443", False),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", False),
        ("[fd00::1]:6443", "https://[fd00::1]", True),
        ("10.0.0.0/99,nonsense/", "https://10.0.0.1", True),
    ],
)
def test_what_no_proxy_names_is_reached_directly(no_proxy: str, server: str, is_proxied: bool) -> None:
    found = Proxies(environ={"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": no_proxy}).for_server(server)
    assert (found is not None) == is_proxied


@pytest.mark.parametrize(
    ("environ", "server", "expected"),
    [
        ({"HTTPS_PROXY": "http://a:1", "HTTP_PROXY": "http://b:2"}, "https://s.example", ("a", 1, "$HTTPS_PROXY")),
        ({"HTTPS_PROXY": "http://a:1", "HTTP_PROXY": "http://b:2"}, "http://s.example", ("b", 2, "$HTTP_PROXY")),
        ({"HTTP_PROXY": "http://b:2"}, "https://s.example", None),
        ({"https_proxy": "http://low", "HTTPS_PROXY": "http://up"}, "https://s.example", ("up", 80, "$HTTPS_PROXY")),
        ({"https_proxy": "proxy:3128"}, "https://s.example", ("proxy", 3128, "$https_proxy")),
        ({"https_proxy": "socks5://proxy"}, "https://s.example", ("proxy", 1080, "$https_proxy")),
        ({"https_proxy": "proxy", "no_proxy": "s.example"}, "https://s.example", None),
        ({"https_proxy": ""}, "https://s.example", None),
    ],
)
def test_variables_count_by_scheme_and_upper_case_first(
    environ: dict[str, str], server: str, expected: tuple[str, int, str] | None
) -> None:
    found = Proxies(environ=environ).for_server(server)
    assert (found and (found.host, found.port, found.origin)) == expected


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"ftp://me:{SECRET}@proxy", "'***@proxy' is no usable proxy; write it as http://HOST:PORT"),
        (f"me:{SECRET}@proxy:3128", "'***@proxy:3128' is no usable proxy"),
        (f"http://me:{SECRET}@proxy:port", "is no usable proxy"),
        (f"http://me:{SECRET}@", "is no usable proxy"),
        (f"https://me:{SECRET}@proxy", "https://proxy: proxies that are spoken to in TLS are not supported"),
    ],
)
def test_what_is_no_proxy_is_refused_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(KubeconfigError) as refused:
        Proxy.of(url, "kubeconfig /x: cluster 'c': proxy-url")
    assert problem in str(refused.value) and SECRET not in str(refused.value)
    assert "proxy-url" in str(refused.value)


def test_nothing_shows_the_password() -> None:
    proxy = Proxy.of(f"http://me:{SECRET}@proxy", "$HTTPS_PROXY")
    connection = Connection(
        "https://s.example", TlsSettings(), StaticCredentials(), "here", proxies=Proxies(proxy, {"X": SECRET})
    )
    assert SECRET not in repr(proxy) + str(proxy) + repr(connection) + proxy.shown
    assert (proxy.username, proxy.password) == ("me", SECRET)


def kubeconfig(tmp_path: Path, server: str, **cluster: Any) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": "abcdefgh"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(content))
    file.chmod(0o600)
    return str(file)


def test_proxy_url_comes_before_the_environment_and_counts_for_this_machine_too(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://127.0.0.1:6443", **{"proxy-url": "http://named:3128"})
    environ = {"HTTPS_PROXY": "http://other:1", "NO_PROXY": "*"}
    found = load_connection(file, clock=VirtualClock(), environ=environ).proxy
    assert found is not None and (found.host, found.port) == ("named", 3128)
    assert found.origin == f"kubeconfig {file}: cluster 'c': proxy-url"


def test_without_proxy_url_the_environment_counts(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://api.example.com")
    found = load_connection(file, clock=VirtualClock(), environ={"HTTPS_PROXY": "http://proxy:3128"}).proxy
    assert found is not None and found.origin == "$HTTPS_PROXY"
    assert load_connection(file, clock=VirtualClock(), environ={}).proxy is None
    with pytest.raises(KubeconfigError, match="is no usable proxy"):
        load_connection(file, clock=VirtualClock(), environ={"HTTPS_PROXY": "gopher://proxy"})


def test_a_token_is_not_sent_through_a_proxy_in_the_clear(tmp_path: Path) -> None:
    """To this machine it may go over plain HTTP, but with a proxy it leaves this machine."""
    file = kubeconfig(tmp_path, "http://127.0.0.1:8080", **{"proxy-url": "http://proxy:3128"})
    with pytest.raises(KubeconfigError, match="is plain HTTP: the proxy http://proxy:3128 and everyone behind it"):
        load_connection(file, clock=VirtualClock(), environ={})


# --- through it -------------------------------------------------------------------------------------------------------


async def answered(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(
        text=f"{request.method} {request.path}", headers={"x-proxy": str("proxy-authorization" in request.headers)}
    )


@asynccontextmanager
async def through(proxy: str, server: str, tls: TlsSettings | None = None) -> AsyncIterator[HttpTransport]:
    proxies = Proxies(Proxy.of(proxy, "$HTTPS_PROXY"))
    connection = Connection(server, tls or TlsSettings(), StaticCredentials(), "kubeconfig /x", proxies=proxies)
    transport = HttpTransport(connection)
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def secure_server() -> AsyncIterator[tuple[str, TlsSettings]]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    async with served(answered, context) as url:
        yield url, TlsSettings(authority=Inline(authority.cert_pem.bytes()))


@pytest.mark.parametrize("is_socks", [False, True], ids=["http", "socks5"])
@pytest.mark.parametrize("user", ["", f"me:{SECRET}"], ids=["anybody", "by-name"])
async def test_requests_and_streams_go_through_a_tunnel(is_socks: bool, user: str) -> None:
    async with secure_server() as (url, tls), LittleProxy(user=user, is_socks=is_socks).running() as proxy:
        async with through(proxy.url, url, tls) as transport:
            assert (await transport.request("GET", "/version")).body == b"GET /version"
            assert (await transport.request("POST", "/x", body=b"{}")).body == b"POST /x"
            async with transport.stream("/watch") as chunks:
                assert b"".join([chunk async for chunk in chunks]) == b"GET /watch"
        target = url.removeprefix("https://")
        # One connection for the requests, one for the stream.
        assert proxy.asked == [target if is_socks else f"CONNECT {target}"] * 2


async def test_plain_requests_are_handed_to_the_proxy_whole() -> None:
    async with served(answered) as url, LittleProxy(user=f"me:{SECRET}").running() as proxy:
        async with through(proxy.url, f"{url}/below") as transport:
            answer = await transport.request("GET", "/version", query={"a": "b"})
        assert answer.body == b"GET /below/version"
        assert proxy.asked == [f"GET {url}/below/version?a=b"]


async def test_a_wrong_password_is_said_and_not_shown() -> None:
    async with (
        LittleProxy(user="me:right").running() as proxy,
        through(f"http://me:{SECRET}@127.0.0.1:{proxy.port}", "https://api.example.com") as transport,
    ):
        with pytest.raises(TransportError) as refused:
            await transport.request("GET", "/version")
    text = str(refused.value)
    assert text.startswith(
        f"cannot reach the API server https://api.example.com through the proxy http://127.0.0.1:{proxy.port}: the "
        "proxy answered 407 Proxy Authentication Required; check the name and the password in its address"
    )
    assert "$HTTPS_PROXY" in text and SECRET not in text


@pytest.mark.parametrize(
    ("user", "server", "problem"),
    [
        (f"me:{SECRET}@", "https://api.example.com", "does not accept the name and the password"),
        ("", "https://api.example.com", "asks for a name and a password"),
        ("me:right@", "https://forbidden.example", "the proxy answered: connection not allowed by its rules"),
    ],
)
async def test_what_a_socks_proxy_refuses_is_said(user: str, server: str, problem: str) -> None:
    async with (
        LittleProxy(user="me:right", is_socks=True).running() as proxy,
        through(f"socks5://{user}127.0.0.1:{proxy.port}", server) as transport,
    ):
        with pytest.raises(TransportError, match=problem) as refused:
            await transport.request("GET", "/version")
    assert SECRET not in str(refused.value)


async def test_a_proxy_that_does_not_answer_is_distinguished_from_the_server() -> None:
    async with LittleProxy().running() as proxy:
        gone = proxy.url
    async with through(gone, "https://api.example.com") as transport:
        with pytest.raises(TransportError, match="no connection to the proxy: Connection refused"):
            await transport.request("GET", "/version")


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_what_is_no_proxy_at_all_is_said(scheme: str) -> None:
    async def talk(reader: Any, writer: Any) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await writer.drain()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with through(f"{scheme}://127.0.0.1:{port}", "https://api.example.com") as transport:
        with pytest.raises(TransportError, match=f"no {scheme.upper()} proxy"):
            await transport.request("GET", "/version")
    server.close()
