"""Pods and groups of pods, held back by their gate until there is quota for all of them."""

from __future__ import annotations

from typing import Any

from pilotage.jobs.adapters import marks
from tests.jobs.live.world import Json, QueueingWorld, cluster_queue, flavor, living, local_queue, node, queue


def pod(name: str, *, cpu: int = 1, group: str = "", total: int = 0, seconds: int = 0, **spec: Any) -> Json:
    labels, annotations = {marks.QUEUE_NAME: "lq"}, {}
    if group:
        labels[marks.GROUP_NAME] = group
        annotations[marks.GROUP_TOTAL_COUNT] = str(total)
    annotations["sandbox.pilotage.dev/run-for"] = f"{seconds or 100_000}s"
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "schedulingGates": [{"name": marks.GATE}],
            **spec,
        },
    }


def running(cluster: QueueingWorld) -> list[str]:
    return sorted(one["metadata"]["name"] for one in cluster.objects("Pod") if one["status"].get("phase") == "Running")


async def test_a_pod_is_let_go_onto_the_nodes_of_its_flavor() -> None:
    async with living(nodes=[node("a", pool="x"), node("b", pool="y")]) as cluster:
        cluster.create(flavor("y", pool="y"), cluster_queue(flavors={"y": 1}), local_queue())
        cluster.create(pod("first", seconds=30))
        await cluster.run(3)
        cluster.create(pod("second"))
        await cluster.run(5)
        first = cluster.get("Pod", "first")
        assert first["spec"]["nodeName"] == "b" and first["spec"]["nodeSelector"] == {"pool": "y"}
        assert not first["spec"].get("schedulingGates")
        assert running(cluster) == ["first"] and cluster.get("Pod", "second")["spec"]["schedulingGates"]
        await cluster.run(40)
        assert cluster.condition("first", "Finished") == "True/Succeeded"
        assert running(cluster) == ["second"]


async def test_a_group_starts_together_or_not_at_all() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), pod("a", cpu=2, group="ring", total=3), pod("b", cpu=1, group="ring", total=3))
        await cluster.run(5)
        assert running(cluster) == [] and cluster.objects("Workload") == [], "one member is missing"
        cluster.create(pod("c", cpu=1, group="ring", total=3))
        await cluster.run(5)
        assert running(cluster) == ["a", "b", "c"]
        sets = cluster.workload("ring")["spec"]["podSets"]
        assert sorted(one["count"] for one in sets) == [1, 2]
        assert cluster.condition("ring", "PodsReady") == "True/Started"


async def test_a_group_that_does_not_fit_keeps_all_its_pods_gated() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), *(pod(name, group="ring", total=3) for name in "abc"))
        await cluster.run(5)
        assert running(cluster) == []
        assert cluster.condition("ring", "QuotaReserved") == "False/ExceedsMaxQuota"


async def test_an_evicted_group_waits_for_its_pods_to_be_made_again() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), *(pod(name, group="ring", total=2) for name in "ab"))
        await cluster.run(5)
        assert running(cluster) == ["a", "b"]
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.run(10)
        assert cluster.objects("Pod") == [], "pods cannot be suspended"
        assert cluster.condition("ring", "WaitingForReplacementPods") == "True/ClusterQueueStopped"
        assert cluster.condition("ring", "QuotaReserved").startswith("False/")
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "None"}})
        await cluster.run(5)
        assert running(cluster) == []
        cluster.create(*(pod(name, group="ring", total=2) for name in "cd"))
        await cluster.run(10)
        assert running(cluster) == ["c", "d"]
        assert cluster.condition("ring", "WaitingForReplacementPods").startswith("False/")


async def test_a_group_ends_when_all_have_succeeded_and_frees_its_quota() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), *(pod(name, group="ring", total=2, seconds=20) for name in "ab"))
        await cluster.run(3)
        cluster.create(pod("next", cpu=2))
        await cluster.run(5)
        assert running(cluster) == ["a", "b"]
        await cluster.run(30)
        assert cluster.condition("ring", "Finished") == "True/Succeeded"
        assert running(cluster) == ["next"]


async def test_the_youngest_pod_too_many_is_deleted() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), *(pod(name, group="ring", total=2) for name in "ab"))
        await cluster.run(5)
        cluster.create(pod("c", group="ring", total=2))
        await cluster.run(5)
        assert running(cluster) == ["a", "b"] and cluster.find("Pod", "c") is None


async def test_members_that_disagree_are_reported() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), pod("a", group="ring", total=2), pod("b", group="ring", total=3))
        await cluster.run(5)
        assert running(cluster) == [] and cluster.objects("Workload") == []
        assert "ErrWorkloadCompose" in cluster.events("a") + cluster.events("b")


async def test_deleting_a_waiting_group_removes_its_workload() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=1), *(pod(name, group="ring", total=2) for name in "ab"))
        await cluster.run(5)
        assert len(cluster.objects("Workload")) == 1
        for name in "ab":
            cluster.delete("Pod", name)
        await cluster.run(5)
        assert cluster.objects("Workload") == []


async def test_a_pod_with_the_label_but_no_gate_is_not_ours() -> None:
    async with living() as cluster:
        free = pod("free")
        del free["spec"]["schedulingGates"]
        cluster.create(*queue(), free)
        await cluster.run(5)
        assert running(cluster) == ["free"] and cluster.objects("Workload") == []
