"""Certificates of our own hold where they are shown: to Python's ssl in strict mode, and to Go (kubectl)."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from pilotage.certificates import CertificateAuthority, IssuedCertificate
from tests.e2e.processes import KUBECTL

NAMES = ("localhost", "127.0.0.1", "::1")


class Handshake:
    """TLS between two parties in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for context in (self.server, self.client):
            context.verify_flags |= ssl.VERIFY_X509_STRICT

    def shows(self, context: ssl.SSLContext, issued: IssuedCertificate) -> None:
        context.load_cert_chain(*written(self._folder, issued))

    def between(self, host: str) -> tuple[ssl.SSLObject, ssl.SSLObject]:
        """Client and server after the handshake; SSLError if one does not accept the other."""
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.client.wrap_bio(down, up, server_hostname=host)
        server = self.server.wrap_bio(up, down, server_side=True)
        for side in (client, server, client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        return client, server


def written(folder: Path, issued: IssuedCertificate) -> tuple[Path, Path]:
    pair = folder / "shown.crt", folder / "shown.key"
    pair[0].write_bytes(issued.certificate)
    pair[1].write_bytes(issued.key)
    return pair


@pytest.mark.parametrize("host", NAMES)
def test_a_server_is_accepted_under_each_of_its_names(tmp_path: Path, host: str) -> None:
    authority, both = CertificateAuthority("Pilotage"), Handshake(tmp_path)
    both.shows(both.server, authority.issue("localhost", names=NAMES))
    both.client.load_verify_locations(cadata=authority.certificate.decode())
    client, _ = both.between(host)
    assert client.version() == "TLSv1.3"


def test_a_server_is_not_accepted_under_another_name(tmp_path: Path) -> None:
    authority, both = CertificateAuthority("Pilotage"), Handshake(tmp_path)
    both.shows(both.server, authority.issue("localhost", names=("other.example",)))
    both.client.load_verify_locations(cadata=authority.certificate.decode())
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        both.between("localhost")


def test_an_authority_of_the_same_name_is_another_authority(tmp_path: Path) -> None:
    both = Handshake(tmp_path)
    both.shows(both.server, CertificateAuthority("Pilotage").issue("localhost", names=NAMES))
    both.client.load_verify_locations(cadata=CertificateAuthority("Pilotage").certificate.decode())
    with pytest.raises(ssl.SSLCertVerificationError):
        both.between("localhost")


def test_an_issued_certificate_cannot_issue_others() -> None:
    issued = x509.load_pem_x509_certificate(CertificateAuthority("Pilotage").issue("someone").certificate)
    assert not issued.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not issued.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_a_client_is_who_its_certificate_says(tmp_path: Path) -> None:
    """Common name and organization: user and group for an API server."""
    authority, both = CertificateAuthority("Pilotage"), Handshake(tmp_path)
    both.shows(both.server, authority.issue("localhost", names=NAMES))
    both.client.load_verify_locations(cadata=authority.certificate.decode())
    both.server.load_verify_locations(cadata=authority.certificate.decode())
    both.server.verify_mode = ssl.CERT_REQUIRED
    both.shows(both.client, authority.issue("jane", "admins"))
    _, server = both.between("localhost")
    shown: Any = server.getpeercert()
    assert shown["subject"] == ((("organizationName", "admins"),), (("commonName", "jane"),))


@contextmanager
def answering(context: ssl.SSLContext) -> Iterator[int]:
    """A server that answers /version as an API server does; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = b'{"major":"1","minor":"36","gitVersion":"v1.36.0"}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.e2e
def test_kubectl_accepts_the_server_and_shows_its_own_certificate(tmp_path: Path) -> None:
    authority, context = CertificateAuthority("Pilotage"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*written(tmp_path, authority.issue("localhost", names=NAMES)))
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    certificate, key = written(tmp_path, authority.issue("jane", "admins"))
    flags = [f"--certificate-authority={tmp_path}/ca.crt", f"--client-certificate={certificate}", f"--client-key={key}"]
    with answering(context) as port:
        command = [KUBECTL, "get", "--raw", "/version", f"--server=https://127.0.0.1:{port}", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "") and '"v1.36.0"' in done.stdout
