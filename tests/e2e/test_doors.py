"""The secure port of the installed command under visitors who say nothing, or say it slowly."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import Background, SandboxProcess, eventually, free_port, status

pytestmark = pytest.mark.e2e

IDLE = 1_000


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    sandbox = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "1", "--no-scheduler")
    port = free_port()
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, f"--secure-port={port}")
    eventually("it is ready", lambda: status(port, "/readyz", scheme="https") == 200)
    yield port
    assert scheduler.end() == 0
    sandbox.end()


def test_a_thousand_connections_that_say_nothing_do_not_keep_a_probe_out(port: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(IDLE)]
    try:
        assert [status(port, "/healthz", scheme="https") for _ in range(5)] == [200] * 5
    finally:
        for one in idle:
            one.close()


def test_a_header_that_does_not_end_is_cut_off(port: int) -> None:
    unchecked = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port)) as plain, unchecked.wrap_socket(plain) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        slow.settimeout(25)
        with contextlib.suppress(ConnectionResetError, ssl.SSLEOFError):
            assert slow.recv(1) == b""
    assert status(port, "/healthz", scheme="https") == 200
