"""A real cluster process is recorded while kubectl changes it; recordings are interrupted and go on."""

from __future__ import annotations

import json
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .processes import Background, SandboxProcess, eventually, pilotage

pytestmark = pytest.mark.e2e

RUNS = "--annotations=sandbox.pilotage.dev/run-for=1s"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("sandbox") / "kubeconfig", "--nodes", "3")
    yield running
    running.end()


def lines(path: Path) -> list[dict[str, Any]]:
    """What stands in a trace so far, also while it is written."""
    data = path.read_bytes() if path.exists() else b""
    text = zlib.decompressobj(31).decompress(data) if data else b""
    return [json.loads(line) for line in text.split(b"\n")[:-1]]


def pods(path: Path) -> dict[str, dict[str, Any]]:
    """The last record about each pod, with whether it was deleted."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines(path)[1:]:
        if line.get("put", {}).get("kind") == "Pod":
            found[line["put"]["metadata"]["name"]] = line
        elif line.get("delete", {}).get("kind") == "Pod":
            found[line["delete"]["name"]] = line
    return found


class Recorder(Background):
    """`pilotage record` that has seen what there is."""

    def __init__(self, sandbox: SandboxProcess, path: Path, *options: str) -> None:
        self.path = path
        before = len(lines(path))
        super().__init__("record", "--kubeconfig", sandbox.kubeconfig, "-o", path, *options)
        eventually(
            "the state is recorded", lambda: len(lines(path)) > max(before, 3) or self.process.poll() is not None
        )
        assert self.process.poll() is None, self.process.communicate()[1]


def test_what_kubectl_does_becomes_a_trace(sandbox: SandboxProcess, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    sandbox.kubectl("run", "before", "--image=x", "--env=PASSWORD=secret")
    eventually("it runs", lambda: sandbox.pods_are("Running", 1))
    recorder = Recorder(sandbox, path)
    eventually("it is in the trace", lambda: "before" in pods(path))
    sandbox.kubectl("run", "short", "--image=x", "--restart=Never", RUNS, "--env=PASSWORD=secret")
    sandbox.kubectl("run", "long", "--image=x")
    eventually("one is over", lambda: "delete" in pods(path).get("short", {}))
    sandbox.kubectl("delete", "pod", "before", "--wait=false")
    sandbox.kubectl("cordon", "node-00001")
    sandbox.kubectl(
        "apply",
        "-f",
        "-",
        stdin='{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "giant"}, "spec": '
        '{"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100"}}}]}}',
    )
    eventually("the other is gone", lambda: "delete" in pods(path).get("before", {}) and "giant" in pods(path))
    assert recorder.end(signal.SIGINT) == 0, recorder.stderr
    assert "complete" in recorder.stderr

    told = pods(path)
    assert told["before"]["at"] == 0 and told["before"]["put"]["spec"]["nodeName"] and told["before"]["runs"] > 0
    short = told["short"]
    assert "nodeName" not in short["put"]["spec"] and 1 <= short["runs"] < 20
    assert short["put"]["metadata"]["annotations"]["trace.pilotage.dev/observed-node"].startswith("node-")
    assert "runs" not in told["long"] and "runs" not in told["giant"]
    assert "trace.pilotage.dev/observed-node" not in told["giant"]["put"]["metadata"].get("annotations", {})
    cordoned = [line for line in lines(path) if line.get("put", {}).get("spec", {}).get("unschedulable")]
    # Once without and once with the taint that the node's controller adds.
    assert {line["put"]["metadata"]["name"] for line in cordoned} == {"node-00001"} and cordoned[0]["at"] > 0
    assert "secret" not in json.dumps(lines(path))
    assert pilotage("trace", "validate", path).stdout.endswith("0 errors, 0 warnings\n")
    for name in ("long", "giant", "short"):
        sandbox.kubectl("delete", "pod", name, "--wait=false")
    sandbox.kubectl("uncordon", "node-00001")
    eventually("all is as before", lambda: not sandbox.get("pods"))


def test_a_recording_that_was_killed_goes_on(sandbox: SandboxProcess, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    recorder = Recorder(sandbox, path, "--hash-images")
    sandbox.kubectl("run", "one", "--image=registry/secret")
    sandbox.kubectl("run", "two", "--image=registry/secret")
    eventually("both are bound", lambda: all("nodeName" in str(pods(path).get(name)) for name in ("one", "two")))
    recorder.end(signal.SIGKILL)
    assert lines(path)[0]["recording"] is True
    info = pilotage("trace", "info", path)
    assert "This recording was not finished" in info.stdout, info.stderr

    sandbox.kubectl("delete", "pod", "one")
    sandbox.kubectl("run", "three", "--image=registry/secret")
    recorder = Recorder(sandbox, path, "--hash-images")
    eventually("it has gone on", lambda: "three" in pods(path) and "delete" in pods(path)["one"])
    sandbox.kubectl("delete", "pod", "two")
    eventually("the end is told", lambda: "delete" in pods(path)["two"])
    assert recorder.end(signal.SIGTERM) == 0, recorder.stderr
    assert "were missed, which the trace says" in recorder.stderr

    told = pods(path)
    gaps = [line for line in lines(path) if "gap" in line]
    assert [line["gap"]["reason"] for line in gaps] == ["nothing was recorded"]
    assert told["one"]["runs"] == pytest.approx(gaps[0]["at"] - told["one"]["at"], abs=2)
    assert told["two"]["at"] + told["two"]["runs"] >= gaps[0]["at"]
    assert told["three"]["at"] == gaps[0]["at"] and "nodeName" not in told["three"]["put"]["spec"]
    assert "secret" not in json.dumps(lines(path)) and "recording" not in lines(path)[0]
    for name in ("two", "three"):
        sandbox.kubectl("delete", "pod", name, "--wait=false")
    eventually("all is as before", lambda: not sandbox.get("pods"))


def test_a_recording_ends_by_itself_and_leaves_kinds_out(sandbox: SandboxProcess, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = pilotage("record", "--kubeconfig", sandbox.kubeconfig, "-o", path, "--for", "2s", "--without", "nodes")
    assert done.returncode == 0, done.stderr
    kinds = {json.loads(line)["put"]["kind"] for line in path.read_text().splitlines()[1:]}
    assert "Namespace" in kinds and "Node" not in kinds


def test_a_full_disk_ends_a_recording_with_a_word(sandbox: SandboxProcess, tmp_path: Path) -> None:
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    done = pilotage("record", "--kubeconfig", sandbox.kubeconfig, "-o", tmp_path / "full.jsonl", "--for", "5s")
    assert done.returncode == 1
    assert "cannot be written: No space left on device; make room and try again" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dump_of_kubectl(sandbox: SandboxProcess, tmp_path: Path) -> None:
    sandbox.kubectl("run", "short", "--image=x", "--restart=Never", RUNS)
    eventually("it is over", lambda: sandbox.pods_are("Succeeded", 1))
    (tmp_path / "all.yaml").write_text(sandbox.kubectl("get", "nodes,pods,events", "-A", "-o", "yaml").stdout)
    done = pilotage("record", "--from-dump", tmp_path / "all.yaml", "-o", tmp_path / "t.jsonl.gz")
    assert done.returncode == 0, done.stderr
    assert 0 <= pods(tmp_path / "t.jsonl.gz")["short"]["runs"] < 20
    assert "0 errors, 0 warnings" in pilotage("trace", "validate", tmp_path / "t.jsonl.gz").stdout
    sandbox.kubectl("delete", "pod", "short")
