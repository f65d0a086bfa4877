"""kubectl asks the sandbox who waits in a queue, with the request that Kueue's documentation shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .processes import Background, SandboxProcess, eventually, free_port, status
from .test_workload_queueing import JOB, QUEUES

pytestmark = pytest.mark.e2e

GROUP = "/apis/visibility.kueue.x-k8s.io"
OF_RESEARCH = f"{GROUP}/v1beta2/clusterqueues/research/pendingworkloads"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("visibility") / "kubeconfig", "--nodes", "2")
    running.kubectl("apply", "-f", "-", stdin=QUEUES)
    running.kubectl("apply", "-f", "-", stdin=JOB % {"name": "holder", "seconds": 600})
    eventually("the holder runs", lambda: not running.get("jobs")[0]["spec"].get("suspend"))
    for name in ("one", "two", "three"):
        running.kubectl("apply", "-f", "-", stdin=JOB % {"name": name, "seconds": 1})
    eventually("all others wait", lambda: [one["reason"] for one in items(running)] == ["WaitingForQuota"] * 3)
    yield running
    running.end()


def raw(sandbox: SandboxProcess, path: str) -> Any:
    done = sandbox.kubectl("get", "--raw", path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def items(sandbox: SandboxProcess, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = raw(sandbox, f"{OF_RESEARCH}{query}")["items"]
    return found


def test_kubectl_shows_who_waits_and_for_whom(sandbox: SandboxProcess) -> None:
    document = raw(sandbox, OF_RESEARCH)
    assert document["kind"] == "PendingWorkloadsSummary"
    found = document["items"]
    assert [one["positionInClusterQueue"] for one in found] == [0, 1, 2]
    assert {one["metadata"]["ownerReferences"][0]["name"] for one in found} == {"one", "two", "three"}
    for one in found:
        (need,) = one["waitsFor"]
        assert (need["needed"], need["free"]) == ("2", "0")
        assert need["heldBy"][0]["name"].startswith("job-holder-")
    assert items(sandbox, "?offset=1&limit=1") == found[1:2]
    assert raw(sandbox, f"{GROUP}/v1beta2/namespaces/default/localqueues/team/pendingworkloads")["items"] == found


def test_a_queue_that_does_not_exist_is_not_found(sandbox: SandboxProcess) -> None:
    done = sandbox.kubectl("get", "--raw", OF_RESEARCH.replace("research", "nope"))
    assert done.returncode == 1
    assert done.stderr == 'Error from server (NotFound): clusterqueue.visibility.kueue.x-k8s.io "nope" not found\n'


def test_other_commands_are_not_disturbed(sandbox: SandboxProcess) -> None:
    listed = sandbox.kubectl("api-resources", "-o", "name")
    assert listed.returncode == 0 and listed.stderr == "", listed.stderr
    names = listed.stdout.split()
    assert "clusterqueues.kueue.x-k8s.io" in names
    assert [name for name in names if "visibility" in name] == []
    versions = sandbox.kubectl("api-versions").stdout.split()
    assert {"visibility.kueue.x-k8s.io/v1beta1", "visibility.kueue.x-k8s.io/v1beta2"} <= set(versions)
    assert sandbox.kubectl("get", "clusterqueues", "-o", "name").stdout == "clusterqueue.kueue.x-k8s.io/research\n"
    assert sandbox.kubectl("get", "localqueue/team", "-o", "name").stdout == "localqueue.kueue.x-k8s.io/team\n"
    assert raw(sandbox, f"{GROUP}/v1beta2")["kind"] == "APIResourceList"
    assert raw(sandbox, GROUP)["kind"] == "APIGroup"


def test_run_serves_it_on_its_own_port_to_those_who_may(tmp_path: Path) -> None:
    """What the aggregation layer of a cluster asks, asked directly."""
    sandbox = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "1", "--no-scheduler")
    secure, plain = free_port(), free_port()
    runner = Background(
        "run", "--kubeconfig", sandbox.kubeconfig, "--workload-queueing", "--leader-elect=false",
        f"--secure-port={secure}", f"--insecure-port={plain}",
    )  # fmt: skip
    try:
        sandbox.kubectl("apply", "-f", "-", stdin=QUEUES)
        eventually("the queue is known", lambda: status(plain, OF_RESEARCH) == 200)
        token = yaml.safe_load(sandbox.kubeconfig.read_text())["users"][0]["user"]["token"]
        assert status(secure, OF_RESEARCH, scheme="https", token=token) == 200
        assert status(secure, OF_RESEARCH, scheme="https") == 403
        assert status(secure, OF_RESEARCH, scheme="https", token="nobody's") == 401
        assert [status(plain, path) for path in ("/apis", GROUP, f"{GROUP}/v1beta2")] == [200, 200, 200]
        assert status(plain, OF_RESEARCH.replace("research", "nope")) == 404
        unknown = sandbox.kubectl("get", "--raw", OF_RESEARCH)
        assert "(NotFound)" in unknown.stderr, "nobody has told this API server of it"
    finally:
        code = runner.end()
        sandbox.end()
    assert code == 0 and "Traceback" not in runner.stderr, runner.stderr
