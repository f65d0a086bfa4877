"""TLS towards the API server: whom to trust and which client certificate to show.

A context is expensive to build (it parses every authority), so the last one is kept and reused while authority,
certificate and key are the same bytes. Another context means other connections: the pool never mixes them.
"""

from __future__ import annotations

import logging
import os
import ssl
from pathlib import Path

from msgspec import Struct

from pilotage.kube.credentials import Identity
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.source import Source

_log = logging.getLogger(__name__)


class TlsSettings(Struct, frozen=True):
    """How to check the server. Without an authority the system's own list is trusted."""

    authority: Source | None = None
    is_insecure: bool = False
    server_name: str | None = None


class TlsContexts:
    """The context for an identity, built only when something changed."""

    def __init__(self, settings: TlsSettings, origin: str) -> None:
        self._settings = settings
        self._origin = origin
        self._material: tuple[bytes | None, bytes | None, bytes | None] | None = None
        self._context: ssl.SSLContext | None = None

    def context_for(self, identity: Identity) -> ssl.SSLContext:
        authority = self._settings.authority.read() if self._settings.authority else None
        material = (authority, identity.certificate, identity.key)
        if self._context is None:
            self._context = self._build(*material)
        elif material != self._material:
            self._context = self._rebuild(self._context, *material)
        self._material = material
        return self._context

    def _rebuild(self, context: ssl.SSLContext, *material: bytes | None) -> ssl.SSLContext:
        # A rotation replaces certificate and key one after the other: between the two the pair does not match yet.
        try:
            return self._build(*material)
        except KubeconfigError as error:
            _log.warning("%s; the certificates loaded before stay in use", error)
            return context

    def _build(self, authority: bytes | None, certificate: bytes | None, key: bytes | None) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(
                f"{self._origin}: certificate-authority: no usable PEM certificate ({_reason(error)})"
            ) from error
        # Clusters have authorities made by many hands; newer Pythons refuse those without key identifiers (RFC 5280
        # to the letter), which kubectl and every other client accept.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self._settings.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            self._load_chain(context, certificate, key or b"")
        return context

    def _load_chain(self, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        import tempfile  # only where it is needed: it brings archives and compression along

        # The ssl module reads key pairs from files only.
        with tempfile.TemporaryDirectory(prefix="pilotage-") as directory:
            pair = Path(directory, "client.pem")
            pair.touch(mode=0o600)
            pair.write_bytes(certificate + b"\n" + key)
            try:
                context.load_cert_chain(os.fspath(pair), password=self._refuse_password)
            except (ssl.SSLError, OSError) as error:
                raise KubeconfigError(
                    f"{self._origin}: client-certificate and client-key do not load as a PEM pair ({_reason(error)})"
                ) from error

    def _refuse_password(self) -> str:
        # Without this OpenSSL would ask on the terminal and the process would hang.
        raise KubeconfigError(f"{self._origin}: client-key is encrypted; decrypt it, there is no one to ask")


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error).splitlines()[0]
