"""Users' YAML of Kueue's kinds works unchanged: by deploy/crds at a real API server, built in at the sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .client import Client, Json, Refused
from .queueing_kinds import GROUP, queueing_kinds
from .servers import Server

NAMESPACED = {"workloads", "localqueues"}


@pytest.fixture
def api(server: Server) -> Iterator[Client]:
    with queueing_kinds(server) as client:
        yield client


def path(plural: str, name: str = "") -> str:
    scope = "/namespaces/default" if plural in NAMESPACED else ""
    return f"{GROUP}{scope}/{plural}" + (f"/{name}" if name else "")


def create(api: Client, plural: str, kind: str, name: str, **fields: object) -> Json:
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}}
    return api.request("POST", path(plural), {**head, **fields})


def cluster_queue(api: Client, name: str, **spec: object) -> Json:
    quota = {"name": "cpu", "nominalQuota": 4}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "std", "resources": [quota]}]}
    return create(api, "clusterqueues", "ClusterQueue", name, spec={"resourceGroups": [group], **spec})


def workload(api: Client, name: str, **spec: object) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod_set = {"name": "main", "count": 2, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    return create(api, "workloads", "Workload", name, spec={"podSets": [pod_set], **spec})


def test_what_is_left_out_gets_its_default(api: Client) -> None:
    spec = cluster_queue(api, "defaults")["spec"]
    assert spec["queueingStrategy"] == "BestEffortFIFO" and spec["stopPolicy"] == "None"
    assert spec["flavorFungibility"] == {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    assert spec["preemption"] == {
        "withinClusterQueue": "Never",
        "reclaimWithinCohort": "Never",
        "borrowWithinCohort": {"policy": "Never"},
    }
    assert workload(api, "defaults")["spec"]["active"] is True


def test_a_template_is_kept_whole_and_the_status_is_written_apart(api: Client) -> None:
    made = workload(api, "kept", queueName="lq")
    assert made["spec"]["podSets"][0]["template"]["spec"]["restartPolicy"] == "Never"
    now = "2026-01-01T00:00:00Z"
    condition = {"type": "QuotaReserved", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": now}
    assignment = {"name": "main", "flavors": {"cpu": "std"}, "resourceUsage": {"cpu": "2"}, "count": 2}
    status = {
        "conditions": [condition],
        "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
        "requeueState": {"count": 1, "requeueAt": now},
        "schedulingStats": {"evictions": [{"reason": "PodsReadyTimeout", "underlyingCause": "", "count": 1}]},
    }
    merge = "application/merge-patch+json"
    api.request("PATCH", path("workloads", "kept"), {"status": status}, merge)
    assert not api.request("GET", path("workloads", "kept")).get("status"), "the status is not part of the object"
    api.request("PATCH", f"{path('workloads', 'kept')}/status", {"status": status}, merge)
    assert api.request("GET", path("workloads", "kept"))["status"] == status


def test_all_other_kinds_can_be_created(api: Client) -> None:
    create(api, "localqueues", "LocalQueue", "lq", spec={"clusterQueue": "defaults"})
    create(api, "cohorts", "Cohort", "root", spec={})
    taint = {"key": "spot", "effect": "NoSchedule"}
    create(api, "resourceflavors", "ResourceFlavor", "std", spec={"nodeLabels": {"a": "b"}, "nodeTaints": [taint]})
    create(api, "workloadpriorityclasses", "WorkloadPriorityClass", "high", value=100)
    create(api, "admissionchecks", "AdmissionCheck", "check", spec={"controllerName": "example.com/c"})


def test_nonsense_is_rejected(api: Client) -> None:
    for name, spec in {
        "policy": {"stopPolicy": "Sometimes"},
        "strategy": {"queueingStrategy": "LIFO"},
        "preemption": {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}},
    }.items():
        with pytest.raises(Refused) as refused:
            cluster_queue(api, name, **spec)
        assert refused.value.code == 422, name
    with pytest.raises(Refused):
        workload(api, "no-priority", priorityClassRef={"group": "kueue.x-k8s.io", "kind": "X", "name": "x"})
    with pytest.raises(Refused):
        create(api, "localqueues", "LocalQueue", "nowhere", spec={})


def test_kinds_that_are_the_same_in_the_older_version_may_be_written_in_it(api: Client) -> None:
    for plural, kind, fields in (
        ("localqueues", "LocalQueue", {"spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}),
        ("resourceflavors", "ResourceFlavor", {"spec": {"nodeLabels": {"a": "b"}}}),
        ("workloadpriorityclasses", "WorkloadPriorityClass", {"value": 7}),
        ("admissionchecks", "AdmissionCheck", {"spec": {"controllerName": "example.com/c"}}),
    ):
        older = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": "older"}, **fields}
        api.request("POST", path(plural).replace("v1beta2", "v1beta1"), older)
        read = api.request("GET", path(plural, "older"))
        assert read["apiVersion"] == "kueue.x-k8s.io/v1beta2"
        assert {name: read[name] for name in fields} == fields
