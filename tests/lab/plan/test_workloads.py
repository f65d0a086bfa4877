"""The pods that manifests ask for."""

from __future__ import annotations

from typing import Any

from pilotage.lab.plan.workloads import Manifests
from pilotage.testing import node, pod


def workload(kind: str, name: str = "w", **spec: Any) -> dict[str, Any]:
    limits = {"limits": {"cpu": "2"}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": limits}], **spec.pop("pod", {})},
    }
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": {**spec, "template": template}}


def test_as_many_as_their_controllers_make() -> None:
    objects = [
        workload("Deployment", "d", replicas=2),
        workload("StatefulSet", "s"),
        workload("Job", "j", parallelism=5, completions=3),
        workload("DaemonSet", "agent"),
        pod("alone").node("somewhere").json(),
    ]
    cron = {"metadata": {"name": "cron"}, "spec": {"jobTemplate": {"spec": workload("Job", parallelism=2)["spec"]}}}
    pods = Manifests([*objects, {"apiVersion": "batch/v1", "kind": "CronJob", **cron}]).pods()
    assert [one["metadata"]["name"] for one in pods] == [
        *("d-0", "d-1", "s-0", "j-0", "j-1", "j-2", "alone", "cron-0", "cron-1"),
    ]
    assert "nodeName" not in pods[6]["spec"]


def test_what_an_api_server_fills_in() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    one = Manifests([high, workload("Deployment", pod={"priorityClassName": "high"})]).pods()[0]
    assert one["spec"]["priority"] == 7
    assert one["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}
    assert one["metadata"]["ownerReferences"][0]["kind"] == "Deployment"


def test_a_dump_is_not_expanded_twice() -> None:
    replica_set = workload("ReplicaSet", "d-1", replicas=1)
    replica_set["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "d", "uid": "d", "controller": True}]
    objects = [workload("Deployment", "d", replicas=1), replica_set, pod("d-1-x").owner("ReplicaSet", "d-1").json()]
    assert [one["metadata"]["name"] for one in Manifests(objects).pods()] == ["d-1-x"]


def test_daemons_run_where_they_are_meant_to() -> None:
    nodes = [
        node("a").label("disk", "ssd").json(),
        node("b").json(),
        node("c").label("disk", "ssd").taint("t", "NoSchedule").json(),
    ]
    made = list(Manifests([workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}})]).daemons(nodes))
    assert [one["metadata"]["name"] for one in made] == ["agent-a"]
