from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .processes import Background, SandboxProcess, body, eventually, free_port, pilotage, status

pytestmark = pytest.mark.e2e

_GIANT_CONTAINER = '{"name": "giant", "image": "x", "resources": {"requests": {"cpu": "500"}}}'
GIANT = f'{{"spec": {{"containers": [{_GIANT_CONTAINER}]}}}}'


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
    path.chmod(0o600)
    return path


def test_it_schedules_the_pods_of_a_cluster_from_outside(sandbox: SandboxProcess) -> None:
    sandbox.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=5")
    eventually("five pods wait", lambda: sandbox.pods_are("Pending", 5))
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, "--secure-port=0")
    eventually("five pods run", lambda: sandbox.pods_are("Running", 5))
    events = sandbox.kubectl("get", "events").stdout
    assert events.count("Successfully assigned default/web-") == 5
    assert scheduler.end() == 0
    sandbox.kubectl("scale", "deployment", "web", "--replicas=6")
    eventually("the sixth waits", lambda: len(sandbox.get("pods", "--field-selector=spec.nodeName=")) == 1)


TICKER = """\
from pathlib import Path

from pilotage.api import Handle, Plugin, PostBind


class Ticker(Plugin, PostBind):
    def __init__(self, handle: Handle, args) -> None:
        self._handle, self._path = handle, Path(args["path"])
        self._ticks = handle.metrics.counter("ticker_ticks_total", "Ticks.")
        handle.run_in_background(self._tick)

    async def _tick(self) -> None:
        self._ticks.add()
        raise RuntimeError("once more")

    async def post_bind(self, state, pod, node_name) -> None: ...

    async def close(self) -> None:
        self._path.write_text(self._handle.profile_name)
"""


def test_tasks_metrics_and_close_of_a_plugin(sandbox: SandboxProcess, tmp_path: Path) -> None:
    """Also where lease and pages are in a process of their own."""
    (tmp_path / "ticker.py").write_text(TICKER)
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{pluginConfig: [{{name: Ticker, args: {{path: {tmp_path / 'closed'}}}}}]}}]\n"
        "---\napiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\npluginFiles: [ticker.py]\n"
    )
    pages = free_port()
    flags = ("--secure-port=0", f"--insecure-port={pages}", "--config", config)
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, *flags)

    def ticks() -> float:
        lines = body(pages, "/metrics").splitlines() if status(pages, "/readyz") == 200 else []
        return float(next((line.split()[1] for line in lines if line.startswith("ticker_ticks_total ")), 0))

    eventually("it was run again after an error", lambda: ticks() >= 2)
    assert scheduler.end() == 0
    assert (tmp_path / "closed").read_text() == "default-scheduler"
    assert scheduler.stderr.count("point=Background _tick") == 1


def test_a_server_that_does_not_answer_is_waited_for(sandbox: SandboxProcess, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{unused.getsockname()[1]}"
        kubeconfig = changed(sandbox, tmp_path / "nowhere", server=server)
        pages = free_port()
        scheduler = Background("run", "--kubeconfig", kubeconfig, "--secure-port=0", f"--insecure-port={pages}")
        eventually("it is alive", lambda: status(pages, "/livez") == 200)
        assert status(pages, "/readyz") == 500
        assert scheduler.end() == 0
    assert f"waiting for the API server: cannot reach the API server {server}: " in scheduler.stderr
    assert str(tmp_path / "nowhere") in scheduler.stderr


def test_a_server_that_does_not_let_us_in_is_reported_at_the_start(sandbox: SandboxProcess, tmp_path: Path) -> None:
    content = yaml.safe_load(sandbox.kubeconfig.read_text())
    server = content["clusters"][0]["cluster"]["server"].partition("/t/")[0]
    stranger = changed(sandbox, tmp_path / "stranger", server=server, token="wrong")
    done = pilotage("run", "--secure-port=0", "--kubeconfig", stranger)
    assert done.returncode == 3
    assert "does not accept our credentials: Unauthorized" in done.stderr and done.stderr.count("\n") == 1


def test_its_queue_and_its_reasons_can_be_asked(sandbox: SandboxProcess) -> None:
    pages = free_port()
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, "--secure-port=0", f"--insecure-port={pages}")
    sandbox.kubectl("run", "giant", "--image=x", "--overrides", GIANT)
    address = f"http://127.0.0.1:{pages}"
    eventually("the pod was tried", lambda: "NodeResourcesFit" in pilotage("queue", "--scheduler", address).stdout)
    told = pilotage("explain", "giant", "--scheduler", address)
    assert told.returncode == 1 and "Insufficient cpu" in told.stdout
    assert pilotage("explain", "nobody", "--scheduler", address).returncode == 2
    sandbox.kubectl("delete", "pod", "giant", "--wait=false")
    assert scheduler.end() == 0


def test_pages_are_for_those_whom_the_api_server_lets_in(sandbox: SandboxProcess) -> None:
    port = free_port()
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, f"--secure-port={port}")
    address = f"https://127.0.0.1:{port}"
    eventually("it is ready", lambda: status(port, "/readyz", scheme="https") == 200)
    assert status(port, "/metrics", scheme="https") == 403
    token = yaml.safe_load(sandbox.kubeconfig.read_text())["users"][0]["user"]["token"]
    assert status(port, "/metrics", scheme="https", token=token) == 200
    assert status(port, "/metrics", scheme="https", token="wrong") == 401
    asked = ("queue", "--scheduler", address, "--kubeconfig", sandbox.kubeconfig)
    assert pilotage(*asked, "--insecure-skip-tls-verify").returncode == 0
    assert "certificate is not trusted" in pilotage(*asked).stderr
    assert scheduler.end() == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: [", "kubeconfig {file}"),
        ("apiVersion: v1\nkind: Config\n", "current-context is not set"),
        ("apiVersion: v1\nkind: Config\ncurrent-context: x\n", "no context named 'x'"),
    ],
)
def test_a_wrong_kubeconfig_is_reported(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    done = pilotage("run", "--kubeconfig", file)
    assert done.returncode == 2
    assert problem.format(file=file) in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_an_unknown_context_is_reported(sandbox: SandboxProcess) -> None:
    done = pilotage("run", "--kubeconfig", sandbox.kubeconfig, "--context", "staging")
    assert done.returncode == 2
    assert "no context named 'staging', there is pilotage-sandbox" in done.stderr


def test_nothing_to_connect_to_is_reported(tmp_path: Path) -> None:
    done = pilotage("run", HOME=str(tmp_path))
    assert done.returncode == 2
    assert "no kubeconfig found" in done.stderr and "--kubeconfig FILE" in done.stderr
