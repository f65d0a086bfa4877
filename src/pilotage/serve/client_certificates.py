"""Who shows a client certificate: a user, or a front proxy that speaks for one.

TLS lets in whatever one of the authorities has signed, and does not say which one it was. The two must not be mixed
up: a user's certificate gives no right to speak for others, and a proxy's is no user's identity. So as soon as there is
a proxy to be trusted, a certificate counts for that authority only which has itself signed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pilotage.serve.front_proxy import FrontProxy, Lines
from pilotage.serve.identity import ClientCertificate, NotAuthenticated, User
from pilotage.serve.tls import CertificateError, ServerTls

if TYPE_CHECKING:
    from cryptography import x509

# cryptography is imported in functions: who is asked for no client certificates does without.


class ClientCertificates:
    """The authorities of client certificates. What is trusted here the TLS context lets in, too."""

    def __init__(self, tls: ServerTls) -> None:
        self._tls = tls
        self._users = b""
        self._of_users: list[x509.Certificate] = []
        self._of_proxies: list[x509.Certificate] = []
        self._proxy: FrontProxy | None = None

    def trust_users(self, authority: bytes) -> None:
        """Accept what one of these authorities (PEM) signed as the certificate of a user; CertificateError.

        Those trusted before are trusted no more; b"" trusts none.
        """
        found = _read(authority)
        self._tls.trust_clients(_joined(authority, self._proxy))
        self._users, self._of_users = authority, found

    def trust_proxy(self, proxy: FrontProxy | None) -> None:
        """Let this proxy speak for others, and no other one."""
        found = [] if proxy is None else _read(proxy.authority)
        self._tls.trust_clients(_joined(self._users, proxy))
        self._proxy, self._of_proxies = proxy, found

    def user(self, certificate: ClientCertificate, lines: Lines) -> User:
        """`lines`: the headers of the request. NotAuthenticated if the certificate says nothing."""
        if self._proxy is None:
            return certificate.user()
        if _is_signed(certificate.der, self._of_proxies):
            found = self._proxy.user(certificate.common_name, lines)
            if found is not None:
                return found
        if _is_signed(certificate.der, self._of_users):
            return certificate.user()
        raise NotAuthenticated(f"the client certificate of {certificate.common_name!r} is no user's")


def _joined(users: bytes, proxy: FrontProxy | None) -> bytes:
    return users if proxy is None else users + b"\n" + proxy.authority


def _read(authority: bytes) -> list[x509.Certificate]:
    if not authority.strip():
        return []
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(authority)
    except ValueError as error:
        raise CertificateError(f"the client CA holds no usable PEM certificate ({error})") from error


def _is_signed(der: bytes, authorities: Sequence[x509.Certificate]) -> bool:
    from cryptography import x509

    certificate = x509.load_der_x509_certificate(der)
    return any(_is_signed_by(certificate, authority) for authority in authorities)


def _is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
