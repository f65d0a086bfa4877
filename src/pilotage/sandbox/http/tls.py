"""A certificate of our own for loopback, on request: made anew for each run, trusted through the kubeconfig."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pilotage.certificates import CertificateAuthority

_NAMES: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Tls:
    """Where the server's certificate and key lie, and the authority that clients must trust."""

    certificate_file: Path
    key_file: Path
    authority: bytes


def make_tls(directory: Path) -> Tls:
    """Write a new certificate chain and key to `directory`; the key can be read by its owner only."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = CertificateAuthority("Pilotage sandbox")
    issued = authority.issue("localhost", names=_NAMES)
    tls = Tls(directory / "sandbox.crt", directory / "sandbox.key", authority.certificate)
    _write_private(tls.key_file, issued.key)
    _write_private(tls.certificate_file, issued.certificate)
    return tls


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
