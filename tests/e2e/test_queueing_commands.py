"""`pilotage jobs`, `queues` and `explain` against a running sandbox: they judge as its controller does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.clock import parse_rfc3339, rfc3339

from .processes import SandboxProcess, eventually, pilotage
from .test_queueing_mistakes import apply, cluster_queue, job, local_queue, obj, runs

pytestmark = pytest.mark.e2e

CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "waitForPodsReady": {"blockAdmission": True, "timeout": "77s"},
}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    folder = tmp_path_factory.mktemp("commands")
    configuration: Path = folder / "kueue.yaml"
    configuration.write_text(yaml.safe_dump(CONFIGURATION))
    running = SandboxProcess(folder / "kubeconfig", "--nodes", "2", "--queueing-config", str(configuration))
    apply(running, obj("ResourceFlavor", "std"), cluster_queue("blocked", "std", cpu=4), local_queue("blocked"))
    apply(running, cluster_queue("other", "std", cpu=4), local_queue("other"))
    yield running
    running.end()


def ask(sandbox: SandboxProcess, *words: str) -> str:
    return pilotage(*words, "--kubeconfig", sandbox.kubeconfig).stdout


def rows(sandbox: SandboxProcess) -> dict[str, dict[str, Any]]:
    found = json.loads(ask(sandbox, "jobs", "-o", "json"))
    return {one["job"] or one["key"].partition("/")[2]: one for one in found}


def test_explain_judges_by_the_configuration_of_the_running_controller(sandbox: SandboxProcess) -> None:
    slow = job("slow", "blocked")
    slow["spec"]["template"]["metadata"]["annotations"]["sandbox.pilotage.dev/never-ready"] = "true"
    apply(sandbox, slow)
    eventually("the first one runs", lambda: runs(sandbox, "slow"))
    apply(sandbox, job("next", "blocked"))
    eventually(
        "the second one is held back", lambda: rows(sandbox).get("next", {}).get("reason") == "WaitingForPodsReady"
    )
    told = ask(sandbox, "explain", "workload/next")
    assert "WaitingForPodsReady" in told.splitlines()[0] and "would be" not in told, "there is quota for it"
    stored = json.loads(sandbox.kubectl("get", "workloads.kueue.x-k8s.io", "-o", "json").stdout)["items"]
    [since] = [
        condition["lastTransitionTime"]
        for one in stored
        for condition in one["status"]["conditions"]
        if (condition["type"], condition["status"]) == ("Admitted", "True")
    ]
    assert f"by {rfc3339(parse_rfc3339(since) + 77)}" in ask(sandbox, "explain", "workload/slow")
    assert (rows(sandbox)["next"]["position"], rows(sandbox)["slow"]["position"]) == (1, None)
    assert rows(sandbox)["slow"]["exec_seconds"] >= 0 and rows(sandbox)["next"]["exec_seconds"] is None


def test_a_queued_job_of_which_no_pod_exists_is_explained_by_its_queue(sandbox: SandboxProcess) -> None:
    apply(sandbox, job("large", "other", cpu=40))
    eventually(
        "it is too large for the queue", lambda: rows(sandbox).get("large", {}).get("reason") == "ExceedsMaxQuota"
    )
    assert sandbox.kubectl("get", "pods", "-l", "job-name=large", "-o", "name").stdout == ""
    done = pilotage("explain", "job/large", "--kubeconfig", sandbox.kubeconfig)
    assert done.returncode == 1 and "ExceedsMaxQuota" in done.stdout.splitlines()[0], done.stderr


def test_a_deployment_of_which_no_pod_waits_is_explained_by_its_template(sandbox: SandboxProcess) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], "runtimeClassName": "none"}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    apply(sandbox, obj("Deployment", "web", version="apps/v1", spec=spec))
    done = pilotage("explain", "deploy/web", "--kubeconfig", sandbox.kubeconfig)
    assert "default/web-(next) fits on 2 of 2 nodes" in done.stdout, done.stderr


def test_a_job_without_a_workload_has_a_row_an_event_and_an_explanation(sandbox: SandboxProcess) -> None:
    odd = job("odd", "blocked")
    odd["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "9"}
    apply(sandbox, odd)
    eventually("the event is there", lambda: "ErrWorkloadCompose" in sandbox.kubectl("describe", "job", "odd").stdout)
    found = rows(sandbox)["odd"]
    assert (found["state"], found["reason"]) == ("unqueued", "ErrWorkloadCompose")
    for subject in ("job/odd", "workload/odd"):
        done = pilotage("explain", subject, "--kubeconfig", sandbox.kubeconfig)
        assert done.returncode == 1 and "job-min-parallelism" in done.stdout.splitlines()[0], subject


def test_of_24_pods_that_nobody_gated_none_is_bound_without_quota(sandbox: SandboxProcess) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    labels = {"kueue.x-k8s.io/queue-name": "none"}
    apply(sandbox, cluster_queue("none", "std", cpu=0), local_queue("none"))
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{at}", "labels": labels},
            "spec": {"containers": [container]},
        }
        for at in range(24)
    ]
    apply(sandbox, *pods)
    apply(sandbox, job("running", "none"))
    eventually("all are known", lambda: len(rows(sandbox).keys() & {f"p{at}" for at in range(24)}) == 24)
    found = json.loads(sandbox.kubectl("get", "pods", "-l", "kueue.x-k8s.io/queue-name=none", "-o", "json").stdout)[
        "items"
    ]
    assert len(found) == 24 and not [one for one in found if one["spec"].get("nodeName")]
    assert "ExceedsMaxQuota" in ask(sandbox, "explain", "p0").splitlines()[0], (
        "the queue's reason, not that of the gate"
    )
    assert not json.loads(sandbox.kubectl("get", "pods", "-l", "job-name=running", "-o", "json").stdout)["items"]
