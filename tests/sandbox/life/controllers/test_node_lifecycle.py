"""Nodes that stop, are cordoned or under pressure: conditions, taints, and what becomes of their pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.living_cluster import LivingCluster, condition, daemon_set, deployment, pod

NODE = "node-00001"
Object = dict[str, Any]


def stop(cluster: LivingCluster, stopped: bool = True, name: str = NODE) -> None:
    node = cluster.get("Node", name)
    node["metadata"]["annotations"]["sandbox.pilotage.dev/stopped"] = str(stopped).lower()
    cluster.api.update("nodes", "", name, node)


def taints(cluster: LivingCluster, name: str = NODE) -> list[tuple[str, str]]:
    listed = cluster.get("Node", name)["spec"].get("taints") or ()
    return [(one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in listed]


def taint(cluster: LivingCluster, **fields: str) -> None:
    node = cluster.get("Node", NODE)
    node["spec"]["taints"] = [{"key": "broken", "effect": "NoExecute", **fields}]
    cluster.api.update("nodes", "", NODE, node)


async def test_node_that_stops_becomes_unreachable_and_its_pods_move_after_five_minutes() -> None:
    cluster = LivingCluster(nodes=2, binds=True)
    cluster.create(deployment("web", 2))
    cluster.create(daemon_set("agent"))
    await cluster.settle()
    stop(cluster)
    await cluster.run(39)
    assert condition(cluster.get("Node", NODE), "Ready")["status"] == "True" and taints(cluster) == []
    await cluster.run(2)
    ready = condition(cluster.get("Node", NODE), "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert taints(cluster) == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
    on_it = [p for p in cluster.pods() if p["spec"]["nodeName"] == NODE]
    assert {condition(p, "Ready")["status"] for p in on_it} == {"False"}
    await cluster.run(290)
    assert not any(p["metadata"].get("deletionTimestamp") for p in cluster.pods(app="web"))
    await cluster.run(15)
    going = [p for p in cluster.pods() if p["metadata"].get("deletionTimestamp")]
    assert [p["metadata"]["labels"]["app"] for p in going] == ["web"], "daemons stay, and nobody ends the others there"
    assert condition(going[0], "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    stop(cluster, False)
    await cluster.settle()
    assert condition(cluster.get("Node", NODE), "Ready")["status"] == "True" and taints(cluster) == []
    assert not any(p["metadata"].get("deletionTimestamp") for p in cluster.pods())
    assert all(condition(p, "Ready")["status"] == "True" for p in cluster.pods())


async def test_stopped_node_starts_nothing() -> None:
    cluster = LivingCluster()
    stop(cluster)
    cluster.create(pod("a", node=NODE))
    await cluster.run(30)
    assert cluster.status("Pod", "a")["phase"] == "Pending"
    stop(cluster, False)
    await cluster.run(5)
    assert cluster.status("Pod", "a")["phase"] == "Running"


@pytest.mark.parametrize(
    ("tolerations", "goes_after"),
    [
        ([], 0),
        ([{"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}], 60),
        ([{"key": "broken", "operator": "Exists"}], None),
        ([{"key": "broken", "operator": "Equal", "value": "other"}], 0),
    ],
)
async def test_pods_go_when_they_do_not_tolerate_the_taint_any_more(
    tolerations: list[Object], goes_after: int | None
) -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE, tolerations=tolerations))
    await cluster.run(5)
    taint(cluster)
    if goes_after:
        await cluster.run(goes_after - 1)
        assert cluster.find("Pod", "a") is not None
    await cluster.run(3)
    assert (cluster.find("Pod", "a") is None) == (goes_after is not None)


async def test_pod_stays_if_the_taint_goes_in_time() -> None:
    cluster = LivingCluster()
    tolerated = [{"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    cluster.create(pod("a", node=NODE, tolerations=tolerated))
    await cluster.run(5)
    taint(cluster)
    await cluster.run(50)
    node = cluster.get("Node", NODE)
    del node["spec"]["taints"]
    cluster.api.update("nodes", "", NODE, node)
    await cluster.settle()
    assert cluster.find("Pod", "a") is not None


async def test_cordon_and_pressure_show_as_taints_beside_those_of_others() -> None:
    cluster = LivingCluster()
    taint(cluster, effect="NoSchedule")
    cluster.edit("Node", NODE, unschedulable=True)
    await cluster.settle()
    assert taints(cluster) == [("broken", "NoSchedule"), ("unschedulable", "NoSchedule")]
    node = cluster.get("Node", NODE)
    condition(node, "DiskPressure")["status"] = "True"
    cluster.api.update("nodes", "", NODE, node, "status")
    cluster.edit("Node", NODE, unschedulable=False)
    await cluster.settle()
    assert taints(cluster) == [("broken", "NoSchedule"), ("disk-pressure", "NoSchedule")]
