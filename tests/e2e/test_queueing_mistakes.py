"""Mistakes in queues and workloads as a user makes them with kubectl, and where each is told.

Nothing is admitted wrongly, nothing is lost: once the mistake is mended the job runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .processes import SandboxProcess, eventually, pilotage

pytestmark = pytest.mark.e2e

KUEUE = "kueue.x-k8s.io/v1beta2"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("mistakes") / "kubeconfig", "--nodes", "2")
    yield running
    running.end()


def obj(kind: str, name: str, *, version: str = KUEUE, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def cluster_queue(name: str, flavor: str, cpu: int = 4, **spec: Any) -> dict[str, Any]:
    quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    return obj("ClusterQueue", name, spec={"namespaceSelector": {}, "resourceGroups": groups, **spec})


def local_queue(name: str) -> dict[str, Any]:
    return obj("LocalQueue", name, spec={"clusterQueue": name})


def job(name: str, queue: str, cpu: int = 1, seconds: int = 600) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    lasting = {"annotations": {"sandbox.pilotage.dev/run-for": f"{seconds}s"}}
    made = obj(
        "Job",
        name,
        version="batch/v1",
        spec={
            "suspend": True,
            "template": {"metadata": lasting, "spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    )
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    return made


def apply(sandbox: SandboxProcess, *objects: dict[str, Any]) -> None:
    done = sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert done.returncode == 0, done.stderr


def runs(sandbox: SandboxProcess, name: str) -> bool:
    return sandbox.kubectl("get", "job", name, "-o", "jsonpath={.spec.suspend}").stdout == "false"


def queues(sandbox: SandboxProcess) -> str:
    return pilotage("queues", "--kubeconfig", sandbox.kubeconfig).stdout


def explained(sandbox: SandboxProcess, name: str) -> str:
    return pilotage("explain", f"workload/{name}", "--kubeconfig", sandbox.kubeconfig).stdout


def test_a_queue_names_a_flavor_that_is_not_there(sandbox: SandboxProcess) -> None:
    apply(sandbox, cluster_queue("flavorless", "spot"), local_queue("flavorless"), job("patient", "flavorless"))
    missing = "references missing ResourceFlavor(s): spot"
    eventually("the queue says so", lambda: f"flavorless: Can't admit new workloads: {missing}" in queues(sandbox))
    eventually("the workload says so", lambda: missing in explained(sandbox, "patient"))
    assert not runs(sandbox, "patient")
    apply(sandbox, obj("ResourceFlavor", "spot"))
    eventually("the job runs", lambda: runs(sandbox, "patient"))


def test_cohorts_go_round_in_a_circle(sandbox: SandboxProcess) -> None:
    apply(
        sandbox,
        obj("ResourceFlavor", "std"),
        *(obj("Cohort", one, spec={"parentName": two}) for one, two in ("ab", "ba")),
    )
    apply(sandbox, cluster_queue("dizzy", "std", cohortName="a"), local_queue("dizzy"), job("giddy", "dizzy"))
    eventually("the queue says so", lambda: "cohorts are their own ancestors: a -> b -> a" in queues(sandbox))
    eventually("the workload says so", lambda: "own ancestors" in explained(sandbox, "giddy"))
    assert not runs(sandbox, "giddy")
    sandbox.kubectl("patch", "cohort", "b", "--type=merge", "-p", '{"spec": {"parentName": null}}')
    eventually("the job runs", lambda: runs(sandbox, "giddy"))


def test_a_job_names_a_queue_that_is_not_there(sandbox: SandboxProcess) -> None:
    apply(sandbox, obj("ResourceFlavor", "std"), cluster_queue("late", "std"), job("lost", "late"))
    eventually("the workload says so", lambda: "LocalQueue late doesn't exist" in explained(sandbox, "lost"))
    assert "Misconfigured" in explained(sandbox, "lost") and not runs(sandbox, "lost")
    apply(sandbox, local_queue("late"))
    eventually("the job runs", lambda: runs(sandbox, "lost"))


def test_a_quota_is_lowered_below_its_use(sandbox: SandboxProcess) -> None:
    apply(sandbox, obj("ResourceFlavor", "std"), cluster_queue("cut", "std", 3), local_queue("cut"))
    apply(sandbox, job("first", "cut", 2, seconds=8), job("second", "cut", 1))
    eventually("both run", lambda: runs(sandbox, "first") and runs(sandbox, "second"))
    apply(sandbox, cluster_queue("cut", "std", 1), job("third", "cut", 1, seconds=5))
    eventually("the queue says so", lambda: "usage exceeds the quota: cpu in flavor std by 2" in queues(sandbox))
    eventually("explain says so", lambda: "2 more in use than there is quota, so 3 must" in explained(sandbox, "third"))
    assert runs(sandbox, "first") and runs(sandbox, "second"), "nobody is evicted"
    eventually("the first is done", lambda: "usage exceeds" not in queues(sandbox))
    assert not runs(sandbox, "third"), "what is in use is all that there is"
    sandbox.kubectl("delete", "job", "second")
    eventually("the third runs", lambda: runs(sandbox, "third"))


def test_a_configuration_has_a_typo(tmp_path: Path) -> None:
    file = tmp_path / "kueue.yaml"
    file.write_text(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
        "waitForPodsReady:\n  timeout: 5m\n  requeueingStrategy: {timestamp: Creation}\n"
    )
    for command in (("sandbox", "--queueing-config", file), ("config", "check", file)):
        ended = pilotage(*command)
        assert ended.returncode == 2
        where = f"{file}:5: waitForPodsReady.requeueingStrategy: unknown field"
        assert f'{where} (did you mean "requeuingStrategy"?)' in ended.stderr


def test_what_the_api_server_would_reject_is_rejected_with_the_field(sandbox: SandboxProcess) -> None:
    apply(sandbox, local_queue("fixed"))
    for wrong, expected in (
        ('{"spec": {"clusterQueue": "other"}}', "spec.clusterQueue: Invalid value"),
        ('{"spec": {"stopPolicy": "Sometimes"}}', "spec.stopPolicy: Unsupported value"),
    ):
        told = sandbox.kubectl("patch", "lq", "fixed", "--type=merge", "-p", wrong)
        assert told.returncode != 0 and expected in told.stderr


def test_a_misspelt_field_is_rejected(sandbox: SandboxProcess) -> None:
    wrong = yaml.safe_dump(cluster_queue("misspelt", "std", cohrtName="ring"))
    told = sandbox.kubectl("apply", "-f", "-", stdin=wrong)
    assert told.returncode != 0 and 'unknown field "spec.cohrtName"' in told.stderr
    described = sandbox.kubectl("explain", "cq.spec.cohortName").stdout
    assert "Queues of one cohort lend each other what they do not use" in described


def test_short_names_columns_and_the_older_version(sandbox: SandboxProcess) -> None:
    older = obj("ClusterQueue", "old", version="kueue.x-k8s.io/v1beta1", spec={"cohort": "ring"})
    apply(sandbox, older, obj("Cohort", "ring"), obj("WorkloadPriorityClass", "high", value=7))
    apply(sandbox, obj("AdmissionCheck", "budget", spec={"controllerName": "example.com/budget"}))
    first = {
        "kwl": "NAME QUEUE RESERVED IN ADMITTED FINISHED AGE",
        "lq": "NAME CLUSTERQUEUE PENDING WORKLOADS ADMITTED WORKLOADS",
        "queue": "NAME CLUSTERQUEUE PENDING WORKLOADS ADMITTED WORKLOADS",
        "cq": "NAME COHORT PENDING WORKLOADS",
        "rf": "NAME AGE",
        "flavor": "NAME AGE",
        "wpc": "NAME VALUE",
        "co": "NAME PARENT AGE",
        "ac": "NAME CONTROLLER ACTIVE AGE",
    }
    apply(sandbox, obj("ResourceFlavor", "std"), local_queue("shown"), job("shown", "shown"))
    eventually("the workload is there", lambda: "shown" in sandbox.kubectl("get", "kwl").stdout)
    for name, columns in first.items():
        assert " ".join(sandbox.kubectl("get", name).stdout.splitlines()[0].split()) == columns, name
    read = sandbox.kubectl("get", "cq", "old", "-o", "jsonpath={.apiVersion} {.spec.cohortName}")
    assert read.stdout == "kueue.x-k8s.io/v1beta2 ring"
    assert (
        sandbox.kubectl("get", "clusterqueues.v1beta1.kueue.x-k8s.io", "old", "-o", "jsonpath={.spec.cohort}").stdout
        == "ring"
    )


def test_metrics_are_served_under_kueues_names(sandbox: SandboxProcess) -> None:
    apply(sandbox, obj("ResourceFlavor", "std"), cluster_queue("metered", "std"), local_queue("metered"))
    apply(sandbox, job("counted", "metered"))
    eventually("it runs", lambda: runs(sandbox, "counted"))

    def is_counted() -> bool:
        page = sandbox.kubectl("get", "--raw", "/metrics").stdout
        of_local = 'kueue_local_queue_admission_wait_time_seconds_count{name="metered",namespace="default"'
        return 'kueue_admitted_workloads_total{cluster_queue="metered"' in page and of_local in page

    eventually("the admission is counted", is_counted)
