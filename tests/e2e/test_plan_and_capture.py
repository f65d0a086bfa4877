"""`pilotage plan` and `pilotage capture` about a cluster behind an API server that kubectl has filled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.library import replay_case
from pilotage.testing import node, pod
from tests.e2e.bare_server import bare_server
from tests.e2e.kubectl_command import Kubectl

pytestmark = pytest.mark.e2e


def _pilotage(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pilotage", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_cluster_behind_a_server(tmp_path: Path) -> None:
    owned = pod("p").requests(cpu="3").owner("ReplicaSet", "r").node("a")
    with bare_server(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        kubectl("create -f -", node("a").cpu("4").json(), node("b").cpu("4").json(), owned.json())
        waiting = tmp_path / "w.json"
        waiting.write_text(json.dumps(pod("w").requests(cpu="2").json()))
        kubectl(f"create -f {waiting}")
        server = ["--kubeconfig", str(kubeconfig)]

        fits = _pilotage("plan", "fit", *server, str(waiting), "-o", "json")
        assert fits.returncode == 0, fits.stderr
        assert json.loads(fits.stdout)[0]["nodes"] == {"b": 2}

        drain = _pilotage("plan", "drain", *server, "a", "-o", "json")
        assert drain.returncode == 0, drain.stderr
        assert json.loads(drain.stdout)["nodes"][0]["moves"] == {"default/p": "b"}

        case = tmp_path / "case.tar.gz"
        captured = _pilotage("capture", "pod/w", *server, "-o", str(case))
        assert captured.returncode == 0, captured.stderr
    assert replay_case(case).node == "b"
