from __future__ import annotations

import ssl
import stat
from pathlib import Path

from pilotage.sandbox.http.tls import make_tls


def test_certificate_and_key_belong_together_and_are_private(tmp_path: Path) -> None:
    tls = make_tls(tmp_path / "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate_file, tls.key_file)
    assert stat.S_IMODE(tls.key_file.stat().st_mode) == 0o600
    assert b"BEGIN CERTIFICATE" in tls.authority


def test_a_second_run_makes_new_ones(tmp_path: Path) -> None:
    assert make_tls(tmp_path).authority != make_tls(tmp_path).authority
