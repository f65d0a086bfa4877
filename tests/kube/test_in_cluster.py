"""Inside a pod: the mounted service account is the connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.kube.errors import KubeconfigError
from pilotage.kube.kubeconfig import in_cluster_connection, load_connection

from .manual_clock import ManualClock

ENVIRON = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": "/nonexistent"}


def mount(directory: Path, token: str) -> None:
    (directory / "token").write_text(token)
    (directory / "ca.crt").write_text("authority")
    (directory / "namespace").write_text("kube-system")


async def test_the_service_account_is_used_and_its_token_read_again(tmp_path: Path) -> None:
    mount(tmp_path, "first")
    clock = ManualClock()
    connection = in_cluster_connection(ENVIRON, clock, tmp_path)
    assert connection.server == "https://[fd00::1]:443"
    assert connection.namespace == "kube-system"
    assert connection.tls.authority is not None and connection.tls.authority.read() == b"authority"
    assert (await connection.credentials.identity()).authorization == "Bearer first"
    mount(tmp_path, "renewed")
    clock.now += 2
    assert (await connection.credentials.identity()).authorization == "Bearer renewed"


def test_a_pod_without_mounted_token_says_so(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"token: cannot read .*; does the pod mount its service account token\?"):
        in_cluster_connection(ENVIRON, ManualClock(), tmp_path)


def test_in_cluster_is_the_last_resort_of_the_loader() -> None:
    with pytest.raises(KubeconfigError, match="in-cluster configuration"):
        load_connection(clock=ManualClock(), environ=ENVIRON)
