"""TLS with real certificates: trust, names, client certificates and their rotation."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.source import Inline, WatchedFile
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import TransportError

from .loopback import served, transport_to
from .manual_clock import ManualClock
from .test_kubeconfig import config, write


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, *names: str, client_authority: trustme.CA | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    if client_authority is not None:
        client_authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def trusting(authority: trustme.CA, server_name: str | None = None) -> TlsSettings:
    return TlsSettings(Inline(authority.cert_pem.bytes()), server_name=server_name)


async def who(request: web.BaseRequest) -> web.Response:
    """Answers with the common name of the client's certificate."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return web.Response(text=",".join(names))


async def test_a_server_of_the_trusted_authority_is_accepted(authority: trustme.CA) -> None:
    async with (
        served(who, server_context(authority, "localhost")) as url,
        transport_to(url, tls=trusting(authority)) as it,
    ):
        assert (await it.request("GET", "/")).status == 200


async def test_a_server_of_another_authority_is_refused_in_one_line(authority: trustme.CA) -> None:
    async with (
        served(who, server_context(trustme.CA(), "localhost")) as url,
        transport_to(url, tls=trusting(authority)) as it,
    ):
        with pytest.raises(TransportError) as caught:
            await it.request("GET", "/")
    assert not caught.value.sent
    assert "its certificate is not trusted (" in str(caught.value)
    assert "check certificate-authority" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_server_under_another_name_needs_tls_server_name(authority: trustme.CA) -> None:
    async with served(who, server_context(authority, "kubernetes.example")) as url:
        async with transport_to(url, tls=trusting(authority)) as it:
            with pytest.raises(TransportError, match=r"Hostname mismatch.*\); check server and tls-server-name"):
                await it.request("GET", "/")
        async with transport_to(url, tls=trusting(authority, "kubernetes.example")) as it:
            assert (await it.request("GET", "/")).status == 200


async def test_insecure_accepts_any_certificate(authority: trustme.CA) -> None:
    async with (
        served(who, server_context(authority, "other.example")) as url,
        transport_to(url, tls=TlsSettings(is_insecure=True)) as it,
    ):
        assert (await it.request("GET", "/")).status == 200


async def test_client_certificates_from_a_kubeconfig_are_shown_to_the_server(
    authority: trustme.CA, tmp_path: Path
) -> None:
    client = authority.issue_cert("pilotage@example.org", common_name="pilotage")
    chain = b"".join(blob.bytes() for blob in client.cert_chain_pems)
    user = {
        "client-certificate-data": base64.b64encode(chain).decode(),
        "client-key-data": base64.b64encode(client.private_key_pem.bytes()).decode(),
    }
    cluster = {"certificate-authority-data": base64.b64encode(authority.cert_pem.bytes()).decode()}
    async with served(who, server_context(authority, "localhost", client_authority=authority)) as url:
        path = write(tmp_path / "config", config(user_fields=user, cluster_fields=cluster | {"server": url}))
        transport = HttpTransport(load_connection(path, clock=ManualClock(), environ={}))
        assert (await transport.request("GET", "/")).body == b"pilotage"
        await transport.close()


async def test_without_client_certificate_such_a_server_is_a_transport_error(authority: trustme.CA) -> None:
    async with (
        served(who, server_context(authority, "localhost", client_authority=authority)) as url,
        transport_to(url, tls=trusting(authority)) as it,
    ):
        with pytest.raises(TransportError):
            await it.request("GET", "/")


def store(directory: Path, certificate: trustme.LeafCert) -> None:
    (directory / "tls.crt").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    (directory / "tls.key").write_bytes(certificate.private_key_pem.bytes())


async def test_rotated_certificate_files_are_used_and_a_half_rotated_pair_is_survived(
    authority: trustme.CA, tmp_path: Path
) -> None:
    clock = ManualClock()
    store(tmp_path, authority.issue_cert("a@example.org", common_name="first"))
    credentials = StaticCredentials(
        certificate=WatchedFile(tmp_path / "tls.crt", "client-certificate", clock),
        key=WatchedFile(tmp_path / "tls.key", "client-key", clock),
    )
    context = server_context(authority, "localhost", client_authority=authority)
    async with (
        served(who, context) as url,
        transport_to(url, tls=trusting(authority), credentials=credentials) as it,
    ):
        assert (await it.request("GET", "/")).body == b"first"
        other = tmp_path / "other"
        other.mkdir()
        store(other, authority.issue_cert("b@example.org", common_name="second"))
        (other / "tls.crt").rename(tmp_path / "tls.crt")
        clock.now += 2
        assert (await it.request("GET", "/")).body == b"first"
        (other / "tls.key").rename(tmp_path / "tls.key")
        clock.now += 2
        assert (await it.request("GET", "/")).body == b"second"


def bad_pair(certificate: bytes, key: bytes) -> StaticCredentials:
    return StaticCredentials(certificate=Inline(certificate), key=Inline(key))


async def test_unusable_certificates_are_configuration_errors(authority: trustme.CA) -> None:
    async with transport_to("https://127.0.0.1:1", tls=TlsSettings(Inline(b"no pem"))) as it:
        with pytest.raises(KubeconfigError, match="certificate-authority: no usable PEM certificate"):
            await it.request("GET", "/")
    async with transport_to("https://127.0.0.1:1", credentials=bad_pair(b"no", b"pem")) as it:
        with pytest.raises(KubeconfigError, match="client-certificate and client-key do not load as a PEM pair"):
            await it.request("GET", "/")


async def test_an_encrypted_key_is_refused_instead_of_asking_on_the_terminal(authority: trustme.CA) -> None:
    from cryptography.hazmat.primitives import serialization

    client = authority.issue_cert("a@example.org")
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    credentials = bad_pair(client.cert_chain_pems[0].bytes(), locked)
    async with transport_to("https://127.0.0.1:1", credentials=credentials) as it:
        with pytest.raises(KubeconfigError, match="client-key is encrypted; decrypt it"):
            await it.request("GET", "/")
