"""kubectl against a whole sandbox: workloads, services, quotas, logs and nodes that fail, as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.sandbox.living_cluster import daemon_set, job, stateful_set

from .processes import SandboxProcess, eventually

pytestmark = pytest.mark.e2e

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
RULES = "rules:\n- match: {labels: {app: patient}}\n  do: {ready-after: 1h}\n"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    place = tmp_path_factory.mktemp("workloads")
    (place / "rules.yaml").write_text(RULES)
    running = SandboxProcess(
        place / "kubeconfig", "--nodes", "3", "--pod-rules", place / "rules.yaml", "--run-for", "1s"
    )
    yield running
    running.end()


def apply(sandbox: SandboxProcess, *objects: dict[str, Any]) -> None:
    done = sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert done.returncode == 0, done.stderr


def rolled_out(sandbox: SandboxProcess, name: str) -> bool:
    return sandbox.kubectl("rollout", "status", name, "--timeout=50s").returncode == 0


def test_stateful_set_rolls_out_is_updated_and_rolled_back(sandbox: SandboxProcess) -> None:
    service = {"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 80}]}
    headless = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": service}
    apply(sandbox, headless, stateful_set("db", 2, volumeClaimTemplates=[CLAIM]))
    assert rolled_out(sandbox, "sts/db")
    sandbox.kubectl("set", "image", "sts/db", "c=new")
    assert rolled_out(sandbox, "sts/db")
    sandbox.kubectl("rollout", "undo", "sts/db")
    assert rolled_out(sandbox, "sts/db")
    pods = sandbox.kubectl("get", "pods", "-l", "app=db", "-o", "jsonpath={.items[*].spec.containers[0].image}").stdout
    assert pods.split() == ["i", "i"]
    claims = sandbox.kubectl("get", "pvc", "-o", "name").stdout.split()
    assert claims == ["persistentvolumeclaim/data-db-0", "persistentvolumeclaim/data-db-1"]
    names = ("get", "endpoints", "db", "-o", "jsonpath={.subsets[0].addresses[*].targetRef.name}")
    eventually("both are endpoints", lambda: sorted(sandbox.kubectl(*names).stdout.split()) == ["db-0", "db-1"])
    sandbox.kubectl("delete", "sts,svc", "db")


def test_daemon_set_runs_on_every_node_and_a_drain_leaves_it(sandbox: SandboxProcess) -> None:
    apply(sandbox, daemon_set("agent"))
    assert rolled_out(sandbox, "ds/agent")
    drained = sandbox.kubectl("drain", "node-00002", "--ignore-daemonsets", "--timeout=50s")
    assert drained.returncode == 0, drained.stderr
    assert len(sandbox.kubectl("get", "pods", "-l", "app=agent", "-o", "name").stdout.split()) == 3
    sandbox.kubectl("uncordon", "node-00002")
    sandbox.kubectl("delete", "ds", "agent")


def test_job_by_its_command_and_its_log(sandbox: SandboxProcess) -> None:
    work = job("greeter")
    work["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "echo hello; sleep 1"]
    apply(sandbox, work)
    assert sandbox.kubectl("wait", "--for=condition=complete", "job/greeter", "--timeout=50s").returncode == 0
    assert sandbox.kubectl("logs", "job/greeter").stdout == "hello\n"
    assert sandbox.kubectl("logs", "-f", "job/greeter").stdout == "hello\n"


def test_cron_job_makes_a_job_on_request(sandbox: SandboxProcess) -> None:
    made = sandbox.kubectl("create", "cronjob", "tick", "--image=i", "--schedule=@yearly", "--", "true")
    assert made.returncode == 0, made.stderr
    sandbox.kubectl("create", "job", "now", "--from=cronjob/tick")
    assert sandbox.kubectl("wait", "--for=condition=complete", "job/now", "--timeout=50s").returncode == 0
    wrong = sandbox.kubectl("create", "cronjob", "never", "--image=i", "--schedule=61 * * * *")
    assert "spec.schedule: Invalid value" in wrong.stderr


def test_quota_rejects_and_describes(sandbox: SandboxProcess) -> None:
    sandbox.kubectl("create", "namespace", "small")
    sandbox.kubectl("-n", "small", "create", "quota", "q", "--hard=pods=1,secrets=0")
    rejected = sandbox.kubectl("-n", "small", "create", "secret", "generic", "s")
    assert "exceeded quota: q, requested: secrets=1, used: secrets=0, limited: secrets=0" in rejected.stderr
    assert sandbox.kubectl("-n", "small", "get", "sa", "default").returncode == 0
    assert sandbox.kubectl("delete", "namespace", "small", "--timeout=50s").returncode == 0


def test_rule_of_the_file_says_what_a_pod_does(sandbox: SandboxProcess) -> None:
    sandbox.kubectl("run", "patient", "--image=i", "--labels=app=patient")
    state = ("get", "pod", "patient", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].ready}")
    eventually("it runs and is not ready", lambda: sandbox.kubectl(*state).stdout == "Running false")
    sandbox.kubectl("delete", "pod", "patient")


def test_kubernetes_service_and_heartbeats_say_where_and_when(sandbox: SandboxProcess) -> None:
    port = sandbox.kubectl("get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[0].ports[0].port}").stdout
    server = sandbox.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}").stdout
    assert f":{port}" in server
    leases = json.loads(sandbox.kubectl("get", "leases", "-n", "kube-node-lease", "-o", "json").stdout)["items"]
    assert [lease["metadata"]["name"] for lease in leases] == ["node-00001", "node-00002", "node-00003"]


def test_account_gets_a_token_that_the_server_knows(sandbox: SandboxProcess) -> None:
    token = sandbox.kubectl("create", "token", "default")
    assert token.stdout.count(".") == 2, token.stderr
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.stdout.strip()}}
    shown = sandbox.kubectl("create", "-o", "jsonpath={.status.user.username}", "-f", "-", stdin=yaml.safe_dump(review))
    assert shown.stdout == "system:serviceaccount:default:default", shown.stderr


def test_autoscaler_is_stored_with_a_warning(sandbox: SandboxProcess) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
    made = sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump({**scaler, "spec": spec}))
    assert made.returncode == 0 and "there are no metrics to scale by" in made.stderr, made.stderr
    sandbox.kubectl("delete", "hpa", "web")
