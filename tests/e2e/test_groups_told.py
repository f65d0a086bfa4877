"""What people see of pod groups, with kubectl and the commands, in a sandbox that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .processes import SandboxProcess, eventually, pilotage
from .test_pod_groups import GATES, create, group, job, member

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("told") / "kubeconfig", "--nodes", "2", *GATES)
    yield running
    running.end()


def asked(sandbox: SandboxProcess, *arguments: str) -> tuple[int, Any]:
    done = pilotage(*arguments, "--kubeconfig", str(sandbox.kubeconfig), "-o", "json")
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def message(sandbox: SandboxProcess, name: str) -> str:
    path = "jsonpath={.status.conditions[0].reason} {.status.conditions[0].message}"
    return sandbox.kubectl("get", "podgroup", name, "-o", path).stdout


def test_a_gang_that_waits_for_pods(sandbox: SandboxProcess) -> None:
    create(sandbox, group("few", 3), member("few-1", "few"), member("few-2", "few"))
    eventually("its condition says so", lambda: message(sandbox, "few") == "Unschedulable waiting for pods: 2 of 3")
    assert "waiting for pods: 2 of 3" in sandbox.kubectl("describe", "podgroup", "few").stdout
    code, report = asked(sandbox, "explain", "podgroup/few", *GATES)
    assert (code, report["state"], report["exist"], report["fitsIfComplete"]) == (1, "Gated", 2, True)
    assert report["queue"]["gatedBy"] == "GangScheduling"
    (row,) = [row for row in asked(sandbox, "queue")[1]["gated"] if row["name"] == "few"]
    assert (row["kind"], row["count"], row["message"]) == ("PodGroup", 2, "waiting for pods: 2 of 3")
    create(sandbox, member("few-3", "few"))
    eventually("it has started", lambda: message(sandbox, "few").startswith("Scheduled"))
    assert asked(sandbox, "explain", "podgroup/few", *GATES)[0] == 0


def test_pods_whose_group_does_not_exist(sandbox: SandboxProcess) -> None:
    create(sandbox, member("lost", "none-such"))
    text = 'waiting for pod group "none-such": there is none of that name'
    eventually("an Event says so", lambda: text in sandbox.kubectl("describe", "pod", "lost").stdout)
    code, report = asked(sandbox, "explain", "podgroup/none-such", *GATES)
    assert (code, report["state"], report["wait"]) == (1, "Missing", 1)
    assert [row["name"] for row in asked(sandbox, "queue")[1]["incomplete"]] == ["none-such"]


def test_a_gang_that_does_not_fit(sandbox: SandboxProcess) -> None:
    create(sandbox, group("wide", 2), member("wide-1", "wide", cpu=500), member("wide-2", "wide", cpu=500))
    eventually("it was tried", lambda: "Unschedulable" in message(sandbox, "wide"))
    code, report = asked(sandbox, "explain", "wide-1", *GATES)
    assert code == 1 and report["podGroup"]["fitNow"] == 0
    assert report["podGroup"]["lacks"][0]["rejections"][0]["message"] == "Insufficient cpu"
    assert {"SmallerRequest"} <= {advice["code"] for advice in report["podGroup"]["wouldFitIf"]}
    code, told = asked(sandbox, "explain", "podgroup/wied", *GATES)
    assert code == 2 and '(did you mean "wide"?)' in told


def test_a_job_that_waits_for_quota_and_whose_pods_are_a_gang(sandbox: SandboxProcess) -> None:
    quota = [{"name": "cpu", "nominalQuota": 3}]
    resources = [{"coveredResources": ["cpu"], "flavors": [{"name": "std", "resources": quota}]}]
    kueue: list[dict[str, Any]] = [
        {"kind": "ResourceFlavor", "metadata": {"name": "std"}, "spec": {}},
        {
            "kind": "ClusterQueue",
            "metadata": {"name": "q"},
            "spec": {"namespaceSelector": {}, "resourceGroups": resources},
        },
        {"kind": "LocalQueue", "metadata": {"name": "team", "namespace": "default"}, "spec": {"clusterQueue": "q"}},
    ]
    create(sandbox, *({"apiVersion": "kueue.x-k8s.io/v1beta2", **obj} for obj in kueue))
    large = job("large", 4, 1, labels={"kueue.x-k8s.io/queue-name": "team"})
    large["spec"]["suspend"] = True
    create(sandbox, large)

    def quota_of() -> dict[str, Any]:
        report = asked(sandbox, "explain", "job/large", *GATES)[1]
        assert isinstance(report, dict), report
        found: dict[str, Any] = report.get("quota") or {}
        return found

    eventually("it waits for quota", lambda: "quota" in quota_of().get("message", ""))
    code, report = asked(sandbox, "explain", "job/large", *GATES)
    assert code == 1 and report["answer"].startswith("workload default/job-large")
