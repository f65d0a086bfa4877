from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import PILOTAGE, SandboxProcess, eventually, pilotage

pytestmark = pytest.mark.e2e

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: %(cpu)s}}}]
"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("sandbox") / "kubeconfig", "--nodes", "4")
    yield running
    running.end()


def test_a_deployment_gets_placed_and_runs(sandbox: SandboxProcess) -> None:
    made = sandbox.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=6")
    assert made.stdout == "deployment.apps/web created\n"
    eventually("six pods run", lambda: sandbox.pods_are("Running", 6))
    assert {pod["spec"]["nodeName"] for pod in sandbox.get("pods")} <= {f"node-0000{n}" for n in range(1, 5)}
    rolled = re.compile(r"^web +6/6 +6 +6 ", re.MULTILINE)
    eventually("it is available", lambda: rolled.search(sandbox.kubectl("get", "deployment", "web").stdout) is not None)
    sandbox.kubectl("delete", "deployment", "web")
    eventually("the pods are gone", lambda: not sandbox.get("pods"))


def test_a_pod_that_fits_nowhere_says_why(sandbox: SandboxProcess) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=POD % {"name": "giant", "cpu": 100})
    why = "0/4 nodes are available: 4 Insufficient cpu."
    eventually("the reason is told", lambda: why in sandbox.kubectl("describe", "pod", "giant").stdout)
    sandbox.kubectl("delete", "pod", "giant")


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (POD % {"name": "negative", "cpu": "-1"}, "spec.containers[0].resources.requests[cpu]: Invalid value"),
        (POD.replace("containers: [", "containers: [7, ") % {"name": "typed", "cpu": 1}, "spec.containers[0]"),
        ("apiVersion: v1\nkind: Podd\nmetadata: {name: a}", 'no matches for kind "Podd" in version "v1"'),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {x: %s}" % ("y" * 10_000_000), "too large"),
    ],
    ids=["negative request", "wrong type", "unknown kind", "10 MB"],
)
def test_a_bad_object_is_rejected_and_the_server_goes_on(sandbox: SandboxProcess, manifest: str, problem: str) -> None:
    refused = sandbox.kubectl("create", "--validate=false", "-f", "-", stdin=manifest)
    assert refused.returncode == 1
    assert problem.lower() in refused.stderr.lower()
    assert len(sandbox.get("nodes")) == 4
    assert sandbox.get("configmaps,pods", "--field-selector=metadata.name!=kube-root-ca.crt") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_what_to_export_and_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "it's here"
    running = SandboxProcess(kubeconfig, "--nodes", "2")
    export, url = running.first_lines(2)
    assert shlex.split(export) == ["export", f"KUBECONFIG={kubeconfig}"]
    assert re.fullmatch(r"# https://127\.0\.0\.1:\d+ \(2 nodes, 0 pods\)", url)
    assert running.end(number) == 0


def test_everything_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    options = ["--nodes", "3", "--data-dir", tmp_path / "data"]
    running = SandboxProcess(tmp_path / "kubeconfig", *options)
    assert running.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3").returncode == 0
    eventually("three pods run", lambda: running.pods_are("Running", 3))
    assert running.kubectl("create", "configmap", "last", "--from-literal=a=b").returncode == 0
    before = {pod["metadata"]["uid"] for pod in running.get("pods")}
    assert running.end(signal.SIGKILL) == -signal.SIGKILL

    again = SandboxProcess(tmp_path / "kubeconfig", *options)
    assert {pod["metadata"]["uid"] for pod in again.get("pods")} == before
    assert [
        made["metadata"]["name"] for made in again.get("configmaps", "--field-selector=metadata.name!=kube-root-ca.crt")
    ] == ["last"]
    assert len(again.get("nodes")) == 3
    again.kubectl("scale", "deployment", "web", "--replicas=5")
    eventually("life goes on", lambda: again.pods_are("Running", 5))
    assert again.end() == 0


def test_manifests_templates_and_tls(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "pods.yaml").write_text(POD % {"name": "a", "cpu": 1} + "---" + POD % {"name": "b", "cpu": 1})
    template = tmp_path / "node.yaml"
    template.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: 'big-{index}'}\nstatus: {capacity: {cpu: 64}}")
    options = ["--node-template", template, "--nodes", "2", "-f", manifests, "--tls"]
    running = SandboxProcess(tmp_path / "kubeconfig", *options)
    assert [node["metadata"]["name"] for node in running.get("nodes")] == ["big-1", "big-2"]
    eventually("the pods run", lambda: running.pods_are("Running", 2))
    assert "https://127.0.0.1:" in running.kubeconfig.read_text()
    assert running.end() == 0


BAD_FILES = {
    "malformed YAML": ("a: [1,", "document 1: line 2, column 1: is no valid YAML"),
    "no kind": ("apiVersion: v1\nmetadata: {name: a}", "document 1: kind: expected a text, got nothing"),
    "unknown kind": ("apiVersion: v1\nkind: Podd\nmetadata: {name: a}", 'Podd a: kind: no kind "Podd" in version "v1"'),
    "wrong type": (
        POD.replace("containers: [", "containers: [7, ") % {"name": "a", "cpu": 1},
        "Pod default/a: spec.containers[0]: expected object, got int",
    ),
    "negative request": (
        POD % {"name": "a", "cpu": "-1"},
        "Pod default/a: spec.containers[0].resources.requests[cpu]: Invalid value",
    ),
    "10 MB": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {x: %s}" % ("y" * 10_000_000),
        "ConfigMap default/big: has 1000",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_named_with_object_and_field(tmp_path: Path, name: str) -> None:
    text, problem = BAD_FILES[name]
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(POD % {"name": "good", "cpu": 1})
    bad.write_text(text)
    done = pilotage("sandbox", "-f", good, "-f", bad)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {bad}: document 1: ") and done.stderr.count("\n") == 1
    assert problem in done.stderr


def test_a_bad_template_is_named(tmp_path: Path) -> None:
    template = tmp_path / "node.yaml"
    template.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: four}}")
    done = pilotage("sandbox", "--node-template", template)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {template}: document 1: status.capacity.cpu: ")
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_reported(sandbox: SandboxProcess) -> None:
    found = re.search(r"127\.0\.0\.1:(\d+)", sandbox.kubeconfig.read_text())
    assert found is not None
    done = pilotage("sandbox", "--port", found[1])
    assert done.returncode == 3
    assert done.stderr == f"error: port {found[1]} on 127.0.0.1 is in use: choose another one, or 0 for any\n"


def test_a_data_directory_that_cannot_be_used_is_reported_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "format").write_text("pilotage-data 99\n")
    done = pilotage("sandbox", "--data-dir", other)
    assert done.returncode == 3
    assert (
        done.stderr.startswith(f"error: data directory {other}: was written in format") and done.stderr.count("\n") == 1
    )
    assert [path.name for path in other.iterdir()] == ["format"]

    shutil.rmtree(other)
    running = SandboxProcess(tmp_path / "kubeconfig", "--data-dir", other)
    done = pilotage("sandbox", "--data-dir", other)
    assert done.returncode == 3
    assert f"is in use by process {running.process.pid}" in done.stderr
    assert running.end() == 0


def test_a_kubeconfig_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    done = pilotage("sandbox", "--nodes", "0", "--kubeconfig", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: kubeconfig {tmp_path}: cannot be written") and done.stderr.count("\n") == 1


def test_the_queue_of_the_scheduler_can_be_looked_at(sandbox: SandboxProcess) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=POD % {"name": "waiting", "cpu": 100})
    where = ("--kubeconfig", sandbox.kubeconfig)
    eventually("the pod was tried", lambda: "1 unschedulable" in pilotage("queue", *where).stdout)
    shown = pilotage("queue", *where)
    assert re.search(
        r"^unschedulable +default/waiting +1 +0 +1 +\d+s +- +NodeResourcesFit +0/4 nodes", shown.stdout, re.M
    )
    report = json.loads(pilotage("queue", *where, "-o", "json").stdout)
    assert [pod["name"] for pod in report["unschedulable"]] == ["waiting"]
    sandbox.kubectl("delete", "pod", "waiting")
    eventually("the queue is empty", lambda: pilotage("queue", *where).stdout.startswith("0 active, 0 backoff, 0 uns"))


@pytest.mark.parametrize("is_closed", [True, False])
def test_an_ephemeral_sandbox_ends_with_its_input_or_by_a_signal(is_closed: bool) -> None:
    command = [PILOTAGE, "sandbox", "--ephemeral", "--nodes", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        kubeconfig = Path(process.stdout.readline().decode().strip())
        assert kubeconfig.exists()
        if is_closed:
            process.stdin.close()
        else:
            process.terminate()
        assert process.wait(60) == 0
        assert b"Fatal" not in process.stderr.read() and not kubeconfig.exists()
