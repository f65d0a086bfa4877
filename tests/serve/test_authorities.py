"""The authorities of a cluster while they appear, change and cannot be read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from pilotage.kube.transport import Response
from pilotage.serve.authorities import PublishedAuthorities
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.identity import ClientCertificate, NotAuthenticated
from pilotage.serve.tls import ServerTls, TlsOptions
from pilotage.testing import VirtualClock


class Cluster:
    """Publishes what it is told to; None for nothing, "" for something that nobody can read."""

    def __init__(self) -> None:
        self.data: dict[str, str] | str | None = None

    async def request(self, method: str, path: str, **_: object) -> Response:
        if self.data is None:
            return Response(404, {}, b"{}")
        return (
            Response(403, {}, b"{}") if self.data == "" else Response(200, {}, json.dumps({"data": self.data}).encode())
        )

    def publish(self, users: trustme.CA, proxies: trustme.CA) -> None:
        self.data = {
            "client-ca-file": users.cert_pem.bytes().decode(),
            "requestheader-client-ca-file": proxies.cert_pem.bytes().decode(),
            "requestheader-username-headers": '["X-Remote-User"]',
        }


def shown(authority: trustme.CA, name: str) -> ClientCertificate:
    pem = authority.issue_cert(common_name=name).cert_chain_pems[0].bytes()
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    return ClientCertificate({"subject": ((("commonName", name),),)}, der)


def who(certificates: ClientCertificates, certificate: ClientCertificate) -> str:
    try:
        return certificates.user(certificate, [("x-remote-user", "alice")]).name
    except NotAuthenticated:
        return "nobody"


async def test_authorities_that_appear_and_change_are_followed() -> None:
    cluster, clock, certificates = Cluster(), VirtualClock(), ClientCertificates(ServerTls(TlsOptions()))
    transport: Any = cluster
    authorities = PublishedAuthorities(transport, certificates)
    users, old, new = trustme.CA(), trustme.CA(), trustme.CA()
    await authorities.look_up()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(authorities.follow(clock))
        cluster.publish(users, old)
        await clock.advance(61)
        assert (who(certificates, shown(old, "proxy")), who(certificates, shown(users, "bob"))) == ("alice", "bob")
        assert who(certificates, shown(new, "proxy")) == "nobody"
        cluster.data = ""
        await clock.advance(61)
        assert who(certificates, shown(old, "proxy")) == "alice", "what is known stays in use"
        cluster.publish(users, new)
        await clock.advance(61)
        assert (who(certificates, shown(new, "proxy")), who(certificates, shown(old, "proxy"))) == ("alice", "nobody")
        following.cancel()


async def test_what_flags_name_is_not_taken_from_the_cluster() -> None:
    cluster, certificates = Cluster(), ClientCertificates(ServerTls(TlsOptions()))
    transport: Any = cluster
    own, users, proxies = trustme.CA(), trustme.CA(), trustme.CA()
    certificates.trust_users(own.cert_pem.bytes())
    cluster.publish(users, proxies)
    await PublishedAuthorities(transport, certificates, with_users=False).look_up()
    found = [who(certificates, shown(authority, "bob")) for authority in (own, users, proxies)]
    assert found == ["bob", "nobody", "alice"]
