"""The service on a socket, with certificates of its own or given ones, and clients that show theirs."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from multidict import CIMultiDict

from pilotage.clock import SystemClock
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.front_proxy import FrontProxy
from pilotage.serve.identity import ClientCertificate, DelegatedAuthenticator, User
from pilotage.serve.listening import CannotListen, Doors, https, loopback_http
from pilotage.serve.page import PageRequest, text_answer
from pilotage.serve.request_access import Access
from pilotage.serve.site import GuardedSite, Site
from pilotage.serve.tls import CertificateError, ServerTls, TlsOptions

DOORS = Doors(SystemClock())
SITE = Site({"/livez": lambda request: text_answer("ok")})


class Everybody:
    """Lets everybody in, and remembers who that was."""

    def __init__(self, tls: ServerTls | None = None) -> None:
        nowhere: Any = None
        self.certificates = ClientCertificates(tls or ServerTls(TlsOptions()))
        self._authenticator = DelegatedAuthenticator(nowhere, SystemClock(), self.certificates)
        self.seen: list[User] = []

    def certain_user(self, request: PageRequest, certificate: ClientCertificate | None) -> User | None:
        return None

    async def user(self, request: PageRequest, certificate: ClientCertificate | None) -> User:
        user = await self._authenticator.user(request, certificate)
        self.seen.append(user)
        return user

    def is_open(self, path: str) -> bool:
        return False

    async def is_allowed(self, user: User, access: Access) -> bool:
        return True


def given_pair(directory: Path, authority: trustme.CA, name: str = "server") -> TlsOptions:
    issued = authority.issue_cert("localhost")
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    return TlsOptions(str(certificate), str(key))


async def fetch(port: int, context: ssl.SSLContext) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"https://localhost:{port}/livez", ssl=context) as found:
        return found.status, await found.text()


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def unchecking() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def guarded(tls: ServerTls | None = None) -> tuple[GuardedSite, Everybody]:
    everybody = Everybody(tls)
    return GuardedSite(SITE, everybody, everybody, SystemClock()), everybody


async def test_certificate_of_its_own_is_made_for_the_run() -> None:
    site, _ = guarded()
    async with https(site, "127.0.0.1", 0, ServerTls(TlsOptions()), Doors(SystemClock())) as port:
        assert await fetch(port, unchecking()) == (200, "ok")


def test_certificate_of_its_own_is_kept_in_the_directory(tmp_path: Path) -> None:
    ServerTls(TlsOptions(directory=str(tmp_path / "certs")))
    kept = (tmp_path / "certs" / "kube-scheduler.crt").read_bytes()
    key = tmp_path / "certs" / "kube-scheduler.key"
    assert key.stat().st_mode & 0o077 == 0
    ServerTls(TlsOptions(directory=str(tmp_path / "certs")))
    assert (tmp_path / "certs" / "kube-scheduler.crt").read_bytes() == kept


async def test_given_certificate_is_served_and_renewed_while_running(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    tls = ServerTls(given_pair(tmp_path, old))
    site, _ = guarded()
    async with https(site, "127.0.0.1", 0, tls, Doors(SystemClock())) as port:
        assert await fetch(port, trusting(old)) == (200, "ok")
        assert not tls.refresh()
        given_pair(tmp_path, new)
        assert tls.refresh()
        assert await fetch(port, trusting(new)) == (200, "ok")


def test_half_renewed_pair_leaves_the_old_one_in_use(tmp_path: Path) -> None:
    tls = ServerTls(given_pair(tmp_path, trustme.CA()))
    (tmp_path / "server.key").write_bytes(trustme.CA().issue_cert("x").private_key_pem.bytes())
    assert not tls.refresh()


async def test_client_certificate_says_who_asks() -> None:
    clients = trustme.CA()
    tls = ServerTls(TlsOptions())
    site, everybody = guarded(tls)
    everybody.certificates.trust_users(clients.cert_pem.bytes())
    context = unchecking()
    clients.issue_cert(common_name="prometheus", organization_name="monitoring").configure_cert(context)
    async with https(site, "127.0.0.1", 0, tls, Doors(SystemClock())) as port:
        await fetch(port, context)
        await fetch(port, unchecking())
    assert [user.name for user in everybody.seen] == ["prometheus", "system:anonymous"]


async def test_client_certificate_of_another_authority_is_no_identity() -> None:
    tls = ServerTls(TlsOptions())
    tls.trust_clients(trustme.CA().cert_pem.bytes())
    site, everybody = guarded()
    context = unchecking()
    trustme.CA().issue_cert(common_name="prometheus").configure_cert(context)
    async with https(site, "127.0.0.1", 0, tls, Doors(SystemClock())) as port:
        with pytest.raises(aiohttp.ClientError):
            await fetch(port, context)
    assert everybody.seen == []


class Proxied:
    """A server that trusts one authority for users and another one for front proxies."""

    def __init__(self) -> None:
        self.users, self.proxies = trustme.CA(), trustme.CA()
        self.tls = ServerTls(TlsOptions())
        self.site, self.everybody = guarded(self.tls)
        self.everybody.certificates.trust_users(self.users.cert_pem.bytes())
        self.everybody.certificates.trust_proxy(FrontProxy(self.proxies.cert_pem.bytes(), allowed_names=("proxy",)))

    async def visit(self, authority: trustme.CA | None, name: str, *headers: tuple[str, str]) -> User | int:
        """Who the visitor was taken for, or the rejection."""
        context = unchecking()
        if authority is not None:
            authority.issue_cert(common_name=name, organization_name="org").configure_cert(context)
        async with https(self.site, "127.0.0.1", 0, self.tls, Doors(SystemClock())) as port:
            url = f"https://localhost:{port}/livez"
            lines = CIMultiDict(headers)
            async with aiohttp.ClientSession() as session, session.get(url, ssl=context, headers=lines) as found:
                return self.everybody.seen.pop() if found.status == 200 else found.status


ALICE = (("X-Remote-User", "alice"), ("X-Remote-Group", "a,b"), ("X-Remote-Group", "staff"))


async def test_front_proxy_says_who_asks() -> None:
    world = Proxied()
    more = (("X-Remote-Extra-Example.com%2Fscopes", "x"), ("X-Remote-Extra-Example.com%2Fscopes", "y"))
    user = await world.visit(world.proxies, "proxy", *ALICE, *more, ("X-Remote-Uid", "7"))
    assert user == User("alice", ("a,b", "staff", "system:authenticated"), "7", {"example.com/scopes": ("x", "y")})


async def test_headers_of_anyone_else_mean_nothing() -> None:
    world = Proxied()
    ordinary = await world.visit(world.users, "bob", *ALICE)
    assert isinstance(ordinary, User) and (ordinary.name, ordinary.groups) == ("bob", ("org", "system:authenticated"))
    same_name = await world.visit(world.users, "proxy", *ALICE)
    assert isinstance(same_name, User) and same_name.name == "proxy"
    nobody = await world.visit(None, "", *ALICE)
    assert isinstance(nobody, User) and nobody.name == "system:anonymous"


async def test_certificate_of_a_proxy_is_no_ones_identity() -> None:
    world = Proxied()
    assert await world.visit(world.proxies, "system:admin") == 401
    assert await world.visit(world.proxies, "not-allowed", *ALICE) == 401
    assert await world.visit(world.proxies, "proxy") == 401
    assert await world.visit(world.proxies, "proxy", ("X-Remote-User", "")) == 401


async def test_older_tls_is_refused() -> None:
    site, _ = guarded()
    context = unchecking()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    tls = ServerTls(TlsOptions(min_version="VersionTLS13"))
    async with https(site, "127.0.0.1", 0, tls, Doors(SystemClock())) as port:
        with pytest.raises(aiohttp.ClientError):
            await fetch(port, context)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (TlsOptions(certificate_file="a"), "must be given together"),
        (TlsOptions("/nowhere/a.crt", "/nowhere/a.key"), "no usable pair"),
        (TlsOptions(min_version="TLS9"), "is no TLS version; there are VersionTLS10"),
        (TlsOptions(cipher_suites=["ROT13"]), "unknown cipher suite ROT13"),
    ],
)
def test_what_cannot_be_used_is_reported(options: TlsOptions, problem: str) -> None:
    with pytest.raises(CertificateError, match=problem):
        ServerTls(options)


async def test_plain_http_is_for_this_machine_and_asks_nothing() -> None:
    async with (
        loopback_http(SITE, 0, DOORS) as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/livez") as found,
    ):
        assert (found.status, await found.text()) == (200, "ok")


async def test_port_in_use_is_reported() -> None:
    async with loopback_http(SITE, 0, DOORS) as port:
        with pytest.raises(CannotListen, match=f"port {port} on 127.0.0.1 is in use"):
            async with loopback_http(SITE, port, DOORS):
                pass


def test_request_has_one_value_or_the_default() -> None:
    request = PageRequest("/x", query={"a": ["1", "2"]})
    assert (request.first("a"), request.first("b", "z")) == ("1", "z")
