"""Certificates of our own: an authority made for one purpose, and the certificates that it issues.

For servers on loopback and in pods, whose clients are given the authority, and for clients of a control plane in tests.
Keys are P-256. Nothing expires (RFC 5280 writes that as the last second of the year 9999): a certificate lasts as long
as its key is kept, mostly one run, and what verifies it may have another clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

_VALID_FROM: Final = datetime(2000, 1, 1)
_NEVER: Final = datetime(9999, 12, 31, 23, 59, 59)
_PURPOSES: Final = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


class IssuedCertificate(Struct, frozen=True):
    """A certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes


class CertificateAuthority:
    """A self-signed authority. `certificate` (PEM) is what others are to trust."""

    def __init__(self, organization: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Pilotage authority", organization)
        may_sign = x509.BasicConstraints(ca=True, path_length=0)
        made = _draft(self._name, self._key.public_key(), certificate_signing=True)
        made = made.issuer_name(self._name).add_extension(may_sign, critical=True)
        self.certificate = made.sign(self._key, SHA256()).public_bytes(Encoding.PEM)

    def issue(self, common_name: str, organization: str = "", names: Sequence[str] = ()) -> IssuedCertificate:
        """For a server that is reached under `names` (host names and addresses), or for a client, which needs none."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _draft(_name(common_name, organization), key.public_key(), certificate_signing=False)
        made = made.issuer_name(self._name).add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        made = made.add_extension(x509.ExtendedKeyUsage(_PURPOSES), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(issuer, critical=False)
        if names:
            made = made.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), False)
        # Kubernetes looks for the key of service accounts in this form, not in PKCS #8.
        text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return IssuedCertificate(made.sign(self._key, SHA256()).public_bytes(Encoding.PEM), text)


def _draft(subject: x509.Name, key: ec.EllipticCurvePublicKey, *, certificate_signing: bool) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder().subject_name(subject).public_key(key).serial_number(x509.random_serial_number())
    made = made.not_valid_before(_VALID_FROM).not_valid_after(_NEVER)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=certificate_signing,
        crl_sign=certificate_signing,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return made.add_extension(usage, critical=True)


def _name(common_name: str, organization: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name.encode("idna").decode("ascii"))
