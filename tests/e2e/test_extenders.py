"""The example of an extender, as a process of its own, and pods that it is asked about."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import SandboxProcess, eventually

EXAMPLE = Path(__file__).parents[2] / "examples" / "extenders"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def port() -> Iterator[int]:
    number = free_port()
    server = subprocess.Popen([sys.executable, EXAMPLE / "extender.py", str(number)])
    yield number
    server.kill()
    server.wait()


@pytest.mark.e2e
def test_an_extender_keeps_pods_off_a_node_and_says_why(tmp_path: Path, port: int) -> None:
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text((EXAMPLE / "scheduler.yaml").read_text().replace("8888", str(port)))
    sandbox = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "2", "--config", configuration)
    sandbox.kubectl("label", "node", "node-00001", "maintenance=now")
    for name in ("a", "b", "c"):
        sandbox.kubectl("run", name, "--image=x")
    eventually("they run", lambda: sandbox.pods_are("Running", 3))
    nodes = sandbox.kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").stdout.split()
    assert nodes == ["node-00002"] * 3
    sandbox.kubectl("label", "node", "node-00002", "maintenance=now")
    sandbox.kubectl("run", "late", "--image=x")
    reason = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
    eventually("it is told why", lambda: "2 node is under maintenance" in sandbox.kubectl(
        "get", "pod", "late", "-o", reason
    ).stdout)  # fmt: skip
    sandbox.kubectl("label", "node", "node-00002", "maintenance-")
    eventually("it runs", lambda: sandbox.pods_are("Running", 4))
    assert sandbox.end() == 0
