from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .processes import Background, SandboxProcess, eventually, pilotage

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("sandbox") / "kubeconfig", "--nodes", "3", "--no-scheduler")
    yield running
    running.end()


def changed(sandbox: SandboxProcess, path: Path, **server: str) -> Path:
    """The sandbox's kubeconfig with another server or token."""
    content = yaml.safe_load(sandbox.kubeconfig.read_text())
    content["clusters"][0]["cluster"].update({key: value for key, value in server.items() if key == "server"})
    content["users"][0]["user"].update({key: value for key, value in server.items() if key == "token"})
    path.write_text(yaml.safe_dump(content))
    return path


def test_it_schedules_the_pods_of_a_cluster_from_outside(sandbox: SandboxProcess) -> None:
    sandbox.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=5")
    eventually("five pods wait", lambda: sandbox.pods_are("Pending", 5))
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig)
    eventually("five pods run", lambda: sandbox.pods_are("Running", 5))
    events = sandbox.kubectl("get", "events").stdout
    assert events.count("Successfully assigned default/web-") == 5
    assert scheduler.end() == 0
    sandbox.kubectl("scale", "deployment", "web", "--replicas=6")
    eventually("the sixth waits", lambda: len(sandbox.get("pods", "--field-selector=spec.nodeName=")) == 1)


def test_a_kubeconfig_that_leads_nowhere_is_told_at_the_start(sandbox: SandboxProcess, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{unused.getsockname()[1]}"
        done = pilotage("run", "--kubeconfig", changed(sandbox, tmp_path / "nowhere", server=server))
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: cannot reach the API server {server}: ") and done.stderr.count("\n") == 1
    assert str(tmp_path / "nowhere") in done.stderr


def test_a_server_that_does_not_let_us_in_is_told_at_the_start(sandbox: SandboxProcess, tmp_path: Path) -> None:
    content = yaml.safe_load(sandbox.kubeconfig.read_text())
    server = content["clusters"][0]["cluster"]["server"].partition("/t/")[0]
    done = pilotage("run", "--kubeconfig", changed(sandbox, tmp_path / "stranger", server=server, token="wrong"))
    assert done.returncode == 3
    assert "Unauthorized" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: [", "kubeconfig {file}"),
        ("apiVersion: v1\nkind: Config\n", "current-context is not set"),
        ("apiVersion: v1\nkind: Config\ncurrent-context: x\n", "no context named 'x'"),
    ],
)
def test_a_wrong_kubeconfig_is_told(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    done = pilotage("run", "--kubeconfig", file)
    assert done.returncode == 2
    assert problem.format(file=file) in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_an_unknown_context_is_told(sandbox: SandboxProcess) -> None:
    done = pilotage("run", "--kubeconfig", sandbox.kubeconfig, "--context", "staging")
    assert done.returncode == 2
    assert "no context named 'staging', there is pilotage-sandbox" in done.stderr


def test_nothing_to_connect_to_is_told(tmp_path: Path) -> None:
    done = pilotage("run", HOME=str(tmp_path))
    assert done.returncode == 2
    assert "no kubeconfig found" in done.stderr and "--kubeconfig FILE" in done.stderr
