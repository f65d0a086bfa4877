"""Pod groups in the sandbox with kubectl: gangs, Jobs that are gangs, deletion, a restart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .processes import SandboxProcess, eventually

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "pod-groups.md"
GATES = ("--feature-gates", "GenericWorkload=true")
Json = dict[str, Any]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("groups") / "kubeconfig", "--nodes", "2", *GATES)
    yield running
    running.end()


@pytest.fixture(autouse=True)
def empty(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "sandbox" in request.fixturenames:
        running: SandboxProcess = request.getfixturevalue("sandbox")
        running.kubectl("delete", "jobs,pods,podgroups", "--all", "--grace-period=0", "--force")
        eventually("the groups are gone", lambda: not running.get("podgroups"))


def group(name: str, min_count: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


def member(name: str, of: str, cpu: int = 1) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulingGroup": {"podGroupName": of}, "containers": [container]},
    }


def job(name: str, pods: int, cpu: int, **metadata: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "scheduling": {"schedulingPolicy": {"gang": {}}},
            "template": {
                "metadata": {"annotations": {"sandbox.pilotage.dev/run-for": "5s"}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


def create(sandbox: SandboxProcess, *objects: Json) -> None:
    done = sandbox.kubectl(
        "create", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    )
    assert done.returncode == 0, done.stderr


def table(sandbox: SandboxProcess) -> dict[str, list[str]]:
    lines = sandbox.kubectl("get", "podgroups").stdout.splitlines()
    assert not lines or lines[0].split() == ["NAME", "POLICY", "WORKLOAD", "STATUS", "AGE"]
    return {line.split()[0]: line.split()[1:4] for line in lines[1:]}


def placed(sandbox: SandboxProcess, prefix: str = "") -> int:
    pods = sandbox.get("pods")
    return sum(p["metadata"]["name"].startswith(prefix) and "nodeName" in p["spec"] for p in pods)


def test_a_gang_starts_when_it_is_complete(sandbox: SandboxProcess) -> None:
    create(sandbox, group("g", 3), member("g-1", "g"), member("g-2", "g"))
    assert table(sandbox) == {"g": ["Gang", "<none>", "Pending"]}
    create(sandbox, member("plain", "none-such"), member("g-3", "g"))
    eventually("three run", lambda: placed(sandbox, "g-") == 3)
    eventually("the table says so", lambda: table(sandbox) == {"g": ["Gang", "<none>", "Scheduled"]})
    assert placed(sandbox, "plain") == 0
    described = sandbox.kubectl("describe", "podgroup", "g").stdout
    assert "PodGroupInitiallyScheduled" in described and "Min Count:  3" in described


def test_a_gang_that_does_not_fit_holds_nothing(sandbox: SandboxProcess) -> None:
    create(sandbox, group("g", 3), *(member(f"g-{at}", "g", cpu=3) for at in range(3)))
    eventually("it is told", lambda: table(sandbox) == {"g": ["Gang", "<none>", "Unschedulable"]})
    assert placed(sandbox) == 0
    done = sandbox.kubectl(
        "patch", "podgroup", "g", "-p", '{"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}}', "--type=merge"
    )
    assert done.returncode == 0, done.stderr
    eventually("two of them are enough now", lambda: placed(sandbox) == 2)


def test_a_claim_is_reserved_for_the_group_until_it_is_gone(sandbox: SandboxProcess) -> None:
    (documented,) = re.findall(r"cat > shared.yaml <<END\n(.*?)\nEND\n", PAGE.read_text(), re.DOTALL)
    done = sandbox.kubectl("apply", "-f", "-", stdin=documented)
    assert done.returncode == 0, done.stderr
    eventually("the pod runs", lambda: placed(sandbox) == 1)
    (claim,) = sandbox.get("resourceclaims")
    (user,) = claim["status"]["reservedFor"]
    assert (user["apiGroup"], user["resource"], user["name"]) == ("scheduling.k8s.io", "podgroups", "shared")
    sandbox.kubectl("delete", "pod/shared-1", "podgroup/shared", "--grace-period=0", "--force")
    eventually("the claim goes with its group", lambda: not sandbox.get("resourceclaims"))


def test_a_deleted_group_waits_for_its_pods(sandbox: SandboxProcess) -> None:
    create(sandbox, group("g", 1), member("g-1", "g"))
    eventually("it runs", lambda: placed(sandbox) == 1)
    sandbox.kubectl("delete", "podgroup", "g", "--wait=false")
    (found,) = sandbox.get("podgroups")
    assert found["metadata"]["deletionTimestamp"]
    assert found["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    sandbox.kubectl("delete", "pod", "g-1", "--grace-period=0", "--force")
    done = sandbox.kubectl("wait", "--for=delete", "podgroup/g", "--timeout=50s")
    assert done.returncode == 0, done.stderr


def test_jobs_with_a_gang_start_as_a_whole_one_after_the_other(sandbox: SandboxProcess) -> None:
    create(sandbox, job("first", 4, 1), job("second", 2, 3))
    eventually("the first is a group", lambda: placed(sandbox, "first") == 4)
    names = {name.partition("-")[0]: row for name, row in table(sandbox).items()}
    assert set(names) == {"first", "second"} and names["first"][0] == "Gang"
    assert re.fullmatch("first-[a-z0-9]+", names["first"][1])
    done = sandbox.kubectl("wait", "--for=condition=Complete", "job/first", "job/second", "--timeout=60s")
    assert done.returncode == 0, done.stderr
    reasons = {event["reason"] for event in sandbox.get("events") if event["involvedObject"]["kind"] == "Job"}
    assert {"WorkloadCreated", "PodGroupCreated"} <= reasons
    assert len(sandbox.get("workloads.scheduling.k8s.io")) == 2
    sandbox.kubectl("delete", "job", "first", "second")
    eventually("their groups are gone", lambda: not sandbox.get("podgroups"))
    eventually("and their workloads", lambda: not sandbox.get("workloads.scheduling.k8s.io"))


def test_explain_and_both_versions(sandbox: SandboxProcess) -> None:
    explained = sandbox.kubectl("explain", "podgroup.spec.schedulingPolicy.gang.minCount").stdout
    assert "VERSION:    v1beta1" in explained and "How many pods have to have a place" in explained
    older = sandbox.kubectl("explain", "workload.spec", "--api-version=scheduling.k8s.io/v1alpha3").stdout
    assert "podGroupTemplates" in older
    refused = sandbox.kubectl("get", "compositepodgroups")
    assert refused.returncode == 1 and 'doesn\'t have a resource type "compositepodgroups"' in refused.stderr


def test_mistakes_are_told_with_their_place(sandbox: SandboxProcess) -> None:
    both = group("g", 1)
    both["spec"]["schedulingPolicy"]["basic"] = {}
    refused = sandbox.kubectl("create", "-f", "-", stdin=json.dumps(both))
    assert 'spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of' in refused.stderr
    misspelt = group("g", 1)
    misspelt["spec"]["schedulingPolicies"] = {}
    refused = sandbox.kubectl("create", "-f", "-", stdin=json.dumps(misspelt))
    assert 'unknown field "spec.schedulingPolicies"' in refused.stderr
    composite = group("g", 1)
    composite["spec"]["parentCompositePodGroupName"] = "p"
    warned = sandbox.kubectl("create", "-f", "-", stdin=json.dumps(composite))
    assert warned.returncode == 0
    assert "Warning: spec.parentCompositePodGroupName: ignored: groups of pod groups" in warned.stderr


def test_a_gang_in_the_queue_for_quota(sandbox: SandboxProcess) -> None:
    """Kueue's quota lets the Job go, and then its pods start together."""
    kueue: list[Json] = [
        {"kind": "ResourceFlavor", "metadata": {"name": "std"}, "spec": {}},
        {
            "kind": "ClusterQueue",
            "metadata": {"name": "q"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu"],
                        "flavors": [{"name": "std", "resources": [{"name": "cpu", "nominalQuota": 3}]}],
                    }
                ],
            },
        },
        {
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterQueue": "q"},
        },
    ]
    create(sandbox, *({"apiVersion": "kueue.x-k8s.io/v1beta2", **obj} for obj in kueue))
    queue = {"kueue.x-k8s.io/queue-name": "team"}
    small, large = job("small", 3, 1, labels=queue), job("large", 4, 1, labels=queue)
    for one in (small, large):
        one["spec"]["suspend"] = True
    create(sandbox, small, large)
    done = sandbox.kubectl("wait", "--for=condition=Complete", "job/small", "--timeout=60s")
    assert done.returncode == 0, done.stderr
    groups = {name.partition("-")[0]: row[2] for name, row in table(sandbox).items()}
    assert groups == {"small": "Scheduled", "large": "Pending"} and placed(sandbox, "large") == 0


def test_groups_survive_a_restart(tmp_path: Path) -> None:
    options = ("--nodes", "2", "--data-dir", tmp_path / "data", *GATES)
    first = SandboxProcess(tmp_path / "kubeconfig", *options)
    create(first, group("g", 2), member("g-1", "g"), group("old", 1), member("old-1", "old"), job("train", 2, 1))
    eventually("some run", lambda: placed(first) == 3)
    first.kubectl("delete", "podgroup", "old", "--wait=false")
    assert first.end() == 0
    again = SandboxProcess(tmp_path / "kubeconfig", *options)
    try:
        rows = {name.partition("-")[0]: row for name, row in table(again).items()}
        assert {name: row[2] for name, row in rows.items()} == {
            "g": "Pending",
            "old": "Scheduled",
            "train": "Scheduled",
        }
        create(again, member("g-2", "g"))
        eventually("the gang is complete", lambda: table(again)["g"][2] == "Scheduled")
        again.kubectl("delete", "pod", "old-1", "--grace-period=0", "--force")
        eventually("the deleted one goes with its pod", lambda: "old" not in table(again))
    finally:
        again.end()
