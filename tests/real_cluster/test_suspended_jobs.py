"""deploy/workload-queueing/suspended-jobs.yaml: no Job runs in a queue before its turn, whoever submits it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .client import MERGE, Client, Json, Refused
from .servers import RealServer, Server, eventually
from .test_shipped_role import ROOT, kubectl

pytestmark = pytest.mark.real_server

POLICY = ROOT / "deploy" / "workload-queueing" / "suspended-jobs.yaml"
BASE = ROOT / "deploy" / "overlays" / "second-scheduler"
ROLE = ROOT / "deploy" / "workload-queueing" / "rbac.yaml"
JOBS = "/apis/batch/v1/namespaces/tenant/jobs"
QUEUED = {"kueue.x-k8s.io/queue-name": "lq"}


def job(name: str, labels: Json | None = None, **spec: object) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"template": {"spec": pod}, **spec},
    }


@pytest.fixture(scope="module")
def clients(real_server: Server) -> Iterator[tuple[Client, Client]]:
    """A tenant who may do everything with Jobs of one namespace, and the scheduler with the role that we ship."""
    assert isinstance(real_server, RealServer)

    def as_account(name: str, namespace: str) -> Client:
        token = kubectl(real_server, "create", "token", name, "-n", namespace).strip()
        return Client(Path(real_server.plane.kubeconfig(name, {"token": token})))

    kubectl(real_server, "apply", "-k", str(BASE))
    kubectl(real_server, "apply", "-f", str(ROLE))
    kubectl(real_server, "apply", "-f", str(POLICY))
    kubectl(real_server, "create", "namespace", "tenant")
    try:
        kubectl(real_server, "create", "serviceaccount", "alice", "-n", "tenant")
        rule, binding = ("--verb=*", "--resource=jobs.batch"), ("--role=jobs", "--serviceaccount=tenant:alice")
        kubectl(real_server, "create", "role", "jobs", "-n", "tenant", *rule)
        kubectl(real_server, "create", "rolebinding", "jobs", "-n", "tenant", *binding)
        tenant = as_account("alice", "tenant")
        eventually("the policy is in force", lambda: _is_refused(tenant, job("probe", QUEUED)))
        yield tenant, as_account("pilotage", "kube-system")
    finally:
        kubectl(real_server, "delete", "namespace", "tenant", "--wait=false")
        kubectl(real_server, "delete", "-f", str(POLICY))
        kubectl(real_server, "delete", "-f", str(ROLE))
        kubectl(real_server, "delete", "-k", str(BASE), "--wait=false")


def _is_refused(client: Client, obj: Json) -> bool:
    try:
        client.request("POST", f"{JOBS}?dryRun=All", obj)
    except Refused as refused:
        return "created suspended" in str(refused)
    return False


def change(client: Client, name: str, patch: Json) -> Json:
    return client.request("PATCH", f"{JOBS}/{name}", patch, MERGE)


def test_a_job_of_a_queue_is_created_suspended(clients: tuple[Client, Client]) -> None:
    tenant, _ = clients
    for name, spec in (("running", {"suspend": False}), ("silent", {})):
        with pytest.raises(Refused, match=r"set spec\.suspend to true") as refused:
            tenant.request("POST", JOBS, job(name, QUEUED, **spec))
        assert refused.value.reason == "Invalid"
    assert tenant.request("POST", JOBS, job("waiting", QUEUED, suspend=True))["spec"]["suspend"] is True
    assert tenant.request("POST", JOBS, job("outside"))["spec"].get("suspend") is False


def test_only_the_scheduler_lets_it_run(clients: tuple[Client, Client]) -> None:
    tenant, scheduler = clients
    tenant.request("POST", JOBS, job("turn", QUEUED, suspend=True))
    for patch in ({"spec": {"suspend": False}}, {"spec": {"suspend": None}}):
        with pytest.raises(Refused, match="started by the scheduler") as refused:
            change(tenant, "turn", patch)
        assert refused.value.reason == "Forbidden"
    assert change(scheduler, "turn", {"spec": {"suspend": False}})["spec"]["suspend"] is False
    # What runs by right can be changed by its owner, and stopped.
    assert change(tenant, "turn", {"metadata": {"annotations": {"a": "b"}}})["spec"]["suspend"] is False
    assert change(tenant, "turn", {"spec": {"suspend": True}})["spec"]["suspend"] is True


def test_a_job_that_runs_does_not_enter_a_queue(clients: tuple[Client, Client]) -> None:
    tenant, _ = clients
    tenant.request("POST", JOBS, job("late"))
    with pytest.raises(Refused, match="started by the scheduler"):
        change(tenant, "late", {"metadata": {"labels": QUEUED}})
    change(tenant, "late", {"spec": {"suspend": True}})
    labels = change(tenant, "late", {"metadata": {"labels": QUEUED}})["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "lq"
