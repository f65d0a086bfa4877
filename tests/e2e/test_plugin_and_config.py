"""The installed command with a plugin file and a configuration, scheduler and cluster in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
COMMAND = Path(sys.executable).parent / "pilotage"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
"""

pytestmark = pytest.mark.e2e


def pilotage(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(part) for part in (COMMAND, *arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environment}
    )


def test_a_plugin_named_in_a_configuration_runs_in_a_scheduler_of_its_own(tmp_path: Path) -> None:
    """The plugin says that it was asked by leaving a file behind."""
    witness = tmp_path / "asked"
    plugin = tmp_path / "witness.py"
    plugin.write_text(
        "from pathlib import Path\n"
        "from pilotage.api import Plugin, Score\n"
        "class Witness(Plugin, Score):\n"
        "    def __init__(self, args):\n"
        "        self.path = Path(args['path'])\n"
        "    def score(self, state, pod, node):\n"
        "        self.path.write_text(pod.name)\n"
        "        return 1\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{pluginConfig: [{{name: Witness, args: {{path: {witness}}}}}]}}]\n"
        "---\napiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\npluginFiles: [witness.py]\n"
    )
    sizes = ["--nodes", "3", "--init-pods", "0", "--pods", "5"]
    done = pilotage("bench", "--server", "http", *sizes, "--config", config, "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["pods"] == 5
    assert witness.read_text()


@pytest.mark.parametrize("command", ["run", "sandbox", "demo", "bench"])
def test_a_plugin_file_with_a_mistake_is_rejected_before_anything_starts(command: str, tmp_path: Path) -> None:
    plugin = tmp_path / "broken.py"
    plugin.write_text("from pilotage.api import Filter, Plugin\nclass X(Plugin, Filter):\n    def fitler(self): ...\n")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    done = pilotage(command, "--plugin", plugin, KUBECONFIG=str(kubeconfig))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {plugin}:3: X does not implement filter(self, state, pod, node)")
    assert done.stderr.count("\n") == 1
