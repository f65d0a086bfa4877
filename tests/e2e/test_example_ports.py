"""The ports of Go plugins as their page shows them: the command, and kubectl beside it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.processes import SandboxProcess, eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "examples" / "plugins" / "README.md").read_text()

pytestmark = pytest.mark.e2e


def sandbox(plugin: str, tmp_path: Path) -> SandboxProcess:
    """The command of the page, on a port of its own."""
    (command,) = re.findall(rf"^    pilotage sandbox (.*plugins/{plugin}\.py .*)$", PAGE, flags=re.MULTILINE)
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in shlex.split(command)]
    return SandboxProcess(tmp_path / "kubeconfig", "--port", "0", *words)


def nodes_of(running: SandboxProcess, *arguments: str) -> list[str]:
    return [pod["spec"].get("nodeName", "") for pod in running.get("pods", *arguments)]


def apply(running: SandboxProcess, *manifests: str) -> None:
    done = running.kubectl("apply", "-f", "-", stdin="---\n".join(manifests))
    assert done.returncode == 0, done.stderr


def pod(namespace: str, name: str, resources: str) -> str:
    container = f"{{name: c, image: i, resources: {resources}}}"
    metadata = f"{{name: {name}, namespace: {namespace}}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nspec: {{containers: [{container}]}}\n"


def test_pod_groups(tmp_path: Path) -> None:
    running = sandbox("pod_groups", tmp_path)
    try:
        label = "scheduling.x-k8s.io/pod-group="
        assert [group["spec"]["minMember"] for group in running.get("pg")] == [3, 3]
        eventually("one group runs", lambda: all(nodes_of(running, "-l", f"{label}ants")))
        assert not any(nodes_of(running, "-l", f"{label}bees"))
        running.kubectl("delete", "pods", "-l", f"{label}ants", "--now")
        eventually("the other group runs", lambda: all(nodes_of(running, "-l", f"{label}bees")))
    finally:
        running.end()


def test_elastic_quotas(tmp_path: Path) -> None:
    running = sandbox("elastic_quotas", tmp_path)
    try:
        eventually("team-a borrows", lambda: all(nodes_of(running, "-n", "team-a")))
        one_core = "{requests: {cpu: 1}}"
        apply(running, *(pod("team-b", f"b-{number}", one_core) for number in range(3)))
        eventually("team-b has its min", lambda: sum(map(bool, nodes_of(running, "-n", "team-b"))) == 2)
        eventually("team-a keeps its own", lambda: nodes_of(running, "-n", "team-a") == ["shared"] * 2)
    finally:
        running.end()


def test_node_resource_topology(tmp_path: Path) -> None:
    running = sandbox("node_resource_topology", tmp_path)
    try:
        eventually("the pod is aligned", lambda: nodes_of(running) == ["whole"])
        apply(running, pod("default", "second", "{limits: {cpu: 3, memory: 1Gi}}"))
        free = [{"name": "cpu", "capacity": 4, "allocatable": 4, "available": 4}]
        zones = [{"name": "node-0", "type": "Node", "resources": free}]
        patch = f'{{"zones": {zones!r}}}'.replace("'", '"')
        eventually("it is told why", lambda: "cannot align container c" in str(running.get("events")))
        running.kubectl("patch", "noderesourcetopology", "split", "--type=merge", "-p", patch)
        eventually("a report helps", lambda: sorted(nodes_of(running)) == ["split", "whole"])
    finally:
        running.end()
