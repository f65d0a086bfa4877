from __future__ import annotations

import base64
import stat
from pathlib import Path

import yaml

from pilotage.sandbox.http.kubeconfig import write_kubeconfig


def test_it_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config"
    write_kubeconfig(path, "https://127.0.0.1:1", "secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_an_older_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    path.chmod(0o644)
    write_kubeconfig(path, "https://127.0.0.1:1", "secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "old" not in path.read_text()


def test_over_tls_it_has_the_token_and_the_authority(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", "secret", b"PEM")
    config = yaml.safe_load((tmp_path / "config").read_text())
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:1"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert config["users"][0]["user"] == {"token": "secret"}
    assert config["contexts"][0]["name"] == config["current-context"]


def test_over_plain_http_the_path_has_the_token(tmp_path: Path) -> None:
    """kubectl does not send a user's token to a server without TLS."""
    write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", "secret")
    config = yaml.safe_load((tmp_path / "config").read_text())
    assert config["clusters"][0]["cluster"]["server"] == "http://127.0.0.1:1/t/secret"
