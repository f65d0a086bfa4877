"""`kubectl apply -k` on a sandbox, and the commands as a kubectl plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import KUBECTL, SandboxProcess, environment, eventually

pytestmark = pytest.mark.e2e

OVERLAYS = Path(__file__).parents[2] / "deploy" / "overlays"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("sandbox") / "kubeconfig", "--nodes", "2")
    yield running
    running.end()


@pytest.mark.parametrize("overlay", ["second-scheduler", "replacement"])
def test_overlay_would_be_accepted(sandbox: SandboxProcess, overlay: str) -> None:
    done = sandbox.kubectl("apply", "-k", OVERLAYS / overlay, "--dry-run=server")
    assert done.returncode == 0, done.stderr
    assert "deployment.apps/pilotage" in done.stdout
    stored = "Warning: networkpolicies.networking.k8s.io are stored here and have no effect: there is no network"
    assert done.stderr.splitlines() in ([], [stored])


def test_second_scheduler_comes_up_with_two_replicas(sandbox: SandboxProcess) -> None:
    done = sandbox.kubectl("apply", "-k", OVERLAYS / "second-scheduler")
    assert done.returncode == 0, done.stderr
    rollout = sandbox.kubectl("-n", "kube-system", "rollout", "status", "deployment/pilotage", "--timeout=50s")
    assert "successfully rolled out" in rollout.stdout
    eventually(
        "one may be taken away",
        lambda: sandbox.get("-n", "kube-system", "pdb")[0]["status"].get("disruptionsAllowed") == 1,
    )
    again = sandbox.kubectl("apply", "-k", OVERLAYS / "second-scheduler")
    # kubectl sends the selector of a budget every time: its merge strategy is to replace it.
    changed = [line for line in again.stdout.splitlines() if not line.endswith("unchanged")]
    assert changed == ["poddisruptionbudget.policy/pilotage configured"]


def test_commands_are_those_of_a_kubectl_plugin(sandbox: SandboxProcess, tmp_path: Path) -> None:
    plugin = tmp_path / "kubectl-pilotage"
    start = "import sys; from pilotage.cli.main import kubectl_plugin; sys.exit(kubectl_plugin())"
    plugin.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
    plugin.chmod(0o755)
    found = environment(PATH=f"{tmp_path}:{os.environ['PATH']}", KUBECONFIG=str(sandbox.kubeconfig))

    def kubectl(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [KUBECTL, "pilotage", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=found)

    sandbox.kubectl("run", "web", "--image=x")
    eventually("it runs", lambda: "on node" in kubectl("explain", "web").stdout)
    assert "kubectl pilotage explain" in kubectl("explain", "--help").stdout
    wrong = kubectl("explain", "--nonsense")
    assert wrong.returncode == 2 and "kubectl pilotage explain --help" in wrong.stderr
