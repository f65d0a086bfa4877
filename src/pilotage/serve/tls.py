"""The certificate that the service shows: given in files, kept in a directory, or made for this run.

Certificates in files are renewed by others while we run: `refresh` loads them again when they have changed. A pair that
does not fit (renewed by half) leaves the old one in use.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from pilotage.certificates import IssuedCertificate

log = logging.getLogger(__name__)

TLS_VERSIONS: Final = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
CIPHER_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
"""Names as Go and the flags of kube-scheduler have them -> names of OpenSSL. Those of TLS 1.3 cannot be chosen."""
_OF_TLS_13: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
_FILE_NAME: Final = "kube-scheduler"


class CertificateError(Exception):
    """The certificate cannot be used; the text says which and why."""


class TlsOptions(Struct, frozen=True):
    certificate_file: str = ""
    key_file: str = ""
    directory: str = ""
    """Where a certificate of our own is kept; "" if it need not survive."""
    min_version: str = ""
    cipher_suites: Sequence[str] = ()


class ServerTls:
    """An `ssl.SSLContext` and the files that it was made from."""

    def __init__(self, options: TlsOptions) -> None:
        """CertificateError if the files or the options cannot be used."""
        self._options = options
        self._files = _given_files(options) or _kept_files(options.directory)
        self._own = _issue() if self._files is None else None
        """Made for this run, without files."""
        self.context = _bare_context(options)
        """For the next connection; another one as soon as other clients are to be trusted."""
        self._marks: tuple[int, ...] = ()
        self._load_into(self.context)
        if self._files is not None:
            self._marks = _marks(*self._files)

    def trust_clients(self, authorities: bytes) -> None:
        """Accept client certificates that one of these authorities (PEM) signed and no others, from now on."""
        context = _bare_context(self._options)
        self._load_into(context)
        if authorities.strip():
            try:
                context.load_verify_locations(cadata=authorities.decode("ascii"))
            except (ssl.SSLError, ValueError) as error:
                raise CertificateError(f"the client CA holds no usable PEM certificate ({error})") from error
            context.verify_mode = ssl.CERT_OPTIONAL
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self.context = context

    def refresh(self) -> bool:
        """Load the files again if they have changed; True if new ones are in use."""
        if self._files is None:
            return False
        try:
            marks = _marks(*self._files)
            if marks == self._marks:
                return False
            self._load_into(self.context)
        except (CertificateError, OSError) as error:
            log.warning("the certificate loaded before stays in use: %s", error)
            return False
        self._marks = marks
        return True

    def _load_into(self, context: ssl.SSLContext) -> None:
        if self._files is not None:
            _load(context, *self._files)
        elif self._own is not None:
            with tempfile.TemporaryDirectory(prefix="pilotage-") as directory:
                _load(context, *_written(Path(directory), self._own))


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        # A context of its own first: half of a pair must not reach the one that is in use.
        for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
            one.load_cert_chain(certificate, key, password=_refuse_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise CertificateError(f"{certificate}, {key}: no usable pair of certificate and key ({error})") from error


def _bare_context(options: TlsOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if options.min_version:
        if options.min_version not in TLS_VERSIONS:
            raise CertificateError(f"{options.min_version!r} is no TLS version; there are {', '.join(TLS_VERSIONS)}")
        context.minimum_version = TLS_VERSIONS[options.min_version]
    suites = [name for name in options.cipher_suites if name not in _OF_TLS_13]
    unknown = [name for name in suites if name not in CIPHER_SUITES]
    if unknown:
        raise CertificateError(f"unknown cipher suite {', '.join(unknown)}; there are {', '.join(CIPHER_SUITES)}")
    if suites:
        context.set_ciphers(":".join(CIPHER_SUITES[name] for name in suites))
    return context


def _given_files(options: TlsOptions) -> tuple[Path, Path] | None:
    if bool(options.certificate_file) != bool(options.key_file):
        raise CertificateError("--tls-cert-file and --tls-private-key-file must be given together")
    return (Path(options.certificate_file), Path(options.key_file)) if options.certificate_file else None


def _kept_files(directory: str) -> tuple[Path, Path] | None:
    if not directory:
        return None
    place = Path(directory)
    pair = place / f"{_FILE_NAME}.crt", place / f"{_FILE_NAME}.key"
    if all(path.exists() for path in pair):
        return pair
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        return _written(place, _issue())
    except OSError as error:
        raise CertificateError(f"--cert-dir {directory}: {error.strerror or error}") from error


def _issue() -> IssuedCertificate:
    # Only here is cryptography needed: not by a service that is given its certificate.
    from pilotage.certificates import CertificateAuthority

    host = socket.gethostname()
    return CertificateAuthority("Pilotage").issue(host, names=(host, "localhost", "127.0.0.1", "::1"))


def _written(place: Path, issued: IssuedCertificate) -> tuple[Path, Path]:
    paths = place / f"{_FILE_NAME}.crt", place / f"{_FILE_NAME}.key"
    paths[1].unlink(missing_ok=True)
    with os.fdopen(os.open(paths[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(issued.key)
    paths[0].write_bytes(issued.certificate)
    return paths


def _marks(*paths: Path) -> tuple[int, ...]:
    found = [os.stat(path) for path in paths]
    return tuple(mark for one in found for mark in (one.st_ino, one.st_mtime_ns, one.st_size))


def _refuse_password() -> str:
    # Without this OpenSSL would ask on the terminal and the process would hang.
    raise ValueError("the key is encrypted; there is no one to ask for its password")
