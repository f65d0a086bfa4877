"""Workload queueing as a user meets it: the installed command, kubectl, and YAML as it is written for Kueue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .processes import Background, SandboxProcess, eventually, pilotage

pytestmark = pytest.mark.e2e

TWO_CORES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %(queue)s}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: std, resources: [{name: cpu, nominalQuota: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: %(namespace)s}
spec: {clusterQueue: %(queue)s}
"""
QUEUES = (
    """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: std}
---
"""
    + TWO_CORES % {"queue": "research", "namespace": "default"}
)
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: %(name)s, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  suspend: true
  parallelism: 2
  completions: 2
  template:
    metadata: {annotations: {sandbox.pilotage.dev/run-for: %(seconds)ss}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
"""
LIMITED = (
    """
apiVersion: v1
kind: Namespace
metadata: {name: limited}
---
apiVersion: v1
kind: LimitRange
metadata: {name: bounds, namespace: limited}
spec:
  limits: [{type: Container, max: {cpu: 500m}, defaultRequest: {cpu: 250m}}]
---
"""
    + TWO_CORES % {"queue": "small", "namespace": "limited"}
)
OVER_THE_LIMIT = '{"spec": {"containers": [{"name": "p", "image": "i", "resources": {"limits": {"cpu": "1"}}}]}}'
CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
waitForPodsReady:
  timeout: 3s
  requeuingStrategy: {timestamp: Creation, backoffBaseSeconds: 60}
"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("queueing") / "kubeconfig", "--nodes", "2")
    running.kubectl("apply", "-f", "-", stdin=QUEUES)
    yield running
    running.end()


def is_suspended(sandbox: SandboxProcess, name: str) -> bool:
    found = {one["metadata"]["name"]: one for one in sandbox.get("jobs")}
    return bool(found[name]["spec"].get("suspend"))


def running(sandbox: SandboxProcess, job: str, namespace: str = "default") -> list[Any]:
    shown = sandbox.kubectl("get", "pods", "-n", namespace, "-l", f"job-name={job}", "-o", "json").stdout
    return [one for one in json.loads(shown)["items"] if one["status"]["phase"] == "Running"]


def test_jobs_run_one_after_the_other_and_the_commands_say_why(sandbox: SandboxProcess) -> None:
    made = sandbox.kubectl("apply", "-f", "-", stdin=JOB % {"name": "first", "seconds": 3600})
    assert made.stdout == "job.batch/first created\n", made.stderr
    eventually("the first job runs", lambda: not is_suspended(sandbox, "first"))
    sandbox.kubectl("apply", "-f", "-", stdin=JOB % {"name": "second", "seconds": 1})
    kubeconfig = ["--kubeconfig", str(sandbox.kubeconfig)]
    eventually("the second waits", lambda: "WaitingForQuota" in pilotage("jobs", *kubeconfig).stdout)
    jobs = pilotage("jobs", *kubeconfig).stdout
    assert re.search(r"^default +first +team +research +0 +admitted ", jobs, re.MULTILINE), jobs
    assert re.search(r"^default +second +team +research +0 +pending +1 +WaitingForQuota ", jobs, re.MULTILINE), jobs
    queues = pilotage("queues", *kubeconfig).stdout
    assert re.search(r"^research +std +cpu +2 +2 +0 +0 ", queues, re.MULTILINE), queues
    explained = pilotage("explain", "workload/second", *kubeconfig)
    assert explained.returncode == 1
    assert "std: pod set main needs 2 cpu, 0 free" in explained.stdout
    assert re.search(r"default/job-first-\w+: 2 cpu of std", explained.stdout)
    shown = sandbox.kubectl("get", "workloads.kueue.x-k8s.io").stdout
    assert re.search(r"^job-first-\w+ +team +research +True ", shown, re.MULTILINE), shown
    done = ("--subresource=status", "-p", '{"status": {"phase": "Succeeded"}}')
    for pod in running(sandbox, "first"):
        sandbox.kubectl("patch", "pod", pod["metadata"]["name"], *done)
    eventually("the second runs when the first is done", lambda: not is_suspended(sandbox, "second"))
    told = json.loads(pilotage("queues", *kubeconfig, "-o", "json").stdout)
    assert told["clusterQueues"][0]["quotas"][0]["used"] == 2000
    events = sandbox.kubectl("get", "events").stdout
    for reason in ("CreatedWorkload", "QuotaReserved", "Admitted", "Started", "FinishedWorkload"):
        assert reason in events, reason


def test_limits_of_a_namespace_count_for_its_jobs_and_are_reported(sandbox: SandboxProcess) -> None:
    """What kubectl is told about a pod, the queue says about a job before its pods are tried."""
    sandbox.kubectl("apply", "-f", "-", stdin=LIMITED)
    pod = sandbox.kubectl("run", "p", "--image=i", "-n", "limited", "--overrides", OVER_THE_LIMIT)
    assert 'pods "p" is forbidden: maximum cpu usage per Container is 500m, but limit is 1' in pod.stderr
    sandbox.kubectl("apply", "-n", "limited", "-f", "-", stdin=JOB % {"name": "wide", "seconds": 1})
    bare = (JOB % {"name": "bare", "seconds": 3600}).replace(", resources: {requests: {cpu: 1}}", "")
    sandbox.kubectl("apply", "-n", "limited", "-f", "-", stdin=bare)
    place = ["-n", "limited", "--kubeconfig", str(sandbox.kubeconfig)]
    eventually("the wide one is told", lambda: "Misconfigured" in pilotage("jobs", *place).stdout)
    explained = pilotage("explain", "workload/wide", *place)
    assert explained.returncode == 1
    bound = "maximum cpu usage per Container is 500m, but request is 1 (container c, LimitRange bounds)"
    assert f"pod set main: {bound}" in explained.stdout
    eventually("the bare one runs", lambda: len(running(sandbox, "bare", "limited")) == 2)
    requests = [one["spec"]["containers"][0]["resources"]["requests"] for one in running(sandbox, "bare", "limited")]
    assert requests == [{"cpu": "250m"}] * 2
    queues = json.loads(pilotage("queues", "small", *place[2:], "-o", "json").stdout)
    assert queues["clusterQueues"][0]["quotas"][0]["used"] == 500
    sandbox.kubectl("delete", "limitrange", "bounds", "-n", "limited")
    eventually("the wide one is queued for quota", lambda: "WaitingForQuota" in pilotage("jobs", *place).stdout)


def test_run_queues_workloads_of_a_cluster_that_has_no_scheduler(tmp_path: Path) -> None:
    configuration = tmp_path / "kueue.yaml"
    configuration.write_text(CONFIGURATION)
    sandbox = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "1", "--no-scheduler")
    runner = Background(
        "run", "--kubeconfig", sandbox.kubeconfig, "--workload-queueing", "--queueing-config", configuration,
        "--leader-elect=false", "--secure-port=0",
    )  # fmt: skip
    try:
        sandbox.kubectl("apply", "-f", "-", stdin=QUEUES)
        sandbox.kubectl("apply", "-f", "-", stdin=JOB % {"name": "fine", "seconds": 1})
        eventually("it finishes", lambda: "True" in _finished(sandbox, "job-fine"))
        never = (JOB % {"name": "stuck", "seconds": 1}).replace("run-for: 1s", 'never-ready: "true"')
        sandbox.kubectl("apply", "-f", "-", stdin=never)
        eventually("it is evicted", lambda: "EvictedDueToPodsReadyTimeout" in sandbox.kubectl("get", "events").stdout)
        eventually("it is suspended", lambda: is_suspended(sandbox, "stuck"))
        jobs = json.loads(pilotage("jobs", "--kubeconfig", sandbox.kubeconfig, "-o", "json").stdout)
        [stuck] = [row for row in jobs if row["job"] == "stuck"]
        assert stuck["requeue_count"] == 1 and stuck["requeue_at"]
    finally:
        code = runner.end()
        sandbox.end()
    assert code == 0, runner.stderr
    assert "Traceback" not in runner.stderr


def _finished(sandbox: SandboxProcess, prefix: str) -> str:
    lines = sandbox.kubectl("get", "workloads.kueue.x-k8s.io").stdout.splitlines()
    return " ".join(line.split()[-2] for line in lines if line.startswith(prefix))
