"""Simulated nodes are ready; pods of nodes that are gone are removed."""

from __future__ import annotations

from pilotage.sandbox.life.controllers.nodes import LEASES
from pilotage.sandbox.life.node_templates import make_nodes
from tests.sandbox.living_cluster import LivingCluster, condition, deployment, job, pod

BARE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "bare", "annotations": {"sandbox.pilotage.dev/simulated": "true"}},
}


async def test_bare_simulated_node_gets_a_complete_status() -> None:
    cluster = LivingCluster(nodes=0)
    cluster.create(BARE)
    await cluster.settle()
    node = cluster.get("Node", "bare")
    assert condition(node, "Ready")["status"] == "True" and condition(node, "Ready")["lastTransitionTime"]
    assert node["status"]["allocatable"]["cpu"] == "4"


async def test_node_made_not_ready_by_hand_stays_so() -> None:
    cluster = LivingCluster()
    node = cluster.get("Node", "node-00001")
    condition(node, "Ready")["status"] = "False"
    cluster.api.update("nodes", "", "node-00001", node, "status")
    await cluster.settle()
    assert condition(cluster.get("Node", "node-00001"), "Ready")["status"] == "False"


def look(cluster: LivingCluster, resource: str = LEASES, name: str = "", is_watch: bool = False) -> None:
    cluster.life.on_read(resource, "kube-node-lease" if resource == LEASES else None, name, is_watch=is_watch)


def renewals(cluster: LivingCluster) -> list[str]:
    return [lease["spec"]["renewTime"][11:19] for lease in cluster.api.list(LEASES, "kube-node-lease")]


async def test_leases_are_written_when_someone_looks_and_only_then() -> None:
    cluster = LivingCluster(nodes=2)
    await cluster.run(30)
    before = cluster.store.revision
    await cluster.run(3600)
    assert cluster.store.revision == before, "no one looks: nothing is written"
    look(cluster)
    assert renewals(cluster) == ["01:00:30"] * 2
    await cluster.run(9)
    look(cluster)
    assert renewals(cluster) == ["01:00:30"] * 2, "as recent as that of a kubelet"
    await cluster.run(1)
    look(cluster, name="node-00002")
    assert renewals(cluster) == ["01:00:30", "01:00:40"]


async def test_leases_that_are_watched_are_renewed_until_a_watch_must_have_ended() -> None:
    cluster = LivingCluster(nodes=2)
    look(cluster, is_watch=True)
    await cluster.run(65)
    assert renewals(cluster) == ["00:01:00"] * 2
    await cluster.settle()
    ended = renewals(cluster)
    await cluster.run(60)
    assert renewals(cluster) == ended


async def test_node_that_is_read_has_posted_its_status_within_five_minutes() -> None:
    cluster = LivingCluster()
    node = cluster.get("Node", "node-00001")
    for one in node["status"]["conditions"]:
        one["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
    cluster.api.update("nodes", "", "node-00001", node, "status")
    await cluster.run(301)
    look(cluster, "nodes", "node-00001")
    assert condition(cluster.get("Node", "node-00001"), "Ready")["lastHeartbeatTime"] == "2026-01-01T00:05:01Z"


async def test_pods_of_a_deleted_node_are_removed_after_a_while_and_replaced_elsewhere() -> None:
    cluster = LivingCluster(nodes=2)
    cluster.create(deployment("web", 4))
    await cluster.settle()
    cluster.delete("Node", "node-00001")
    await cluster.run(4)
    assert len([p for p in cluster.pods() if p["spec"]["nodeName"] == "node-00001"]) == 2
    await cluster.settle()
    assert [p["spec"]["nodeName"] for p in cluster.pods(phase="Running")] == ["node-00002"] * 4


async def test_node_that_comes_back_in_time_keeps_its_pods() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001"))
    await cluster.run(5)
    cluster.delete("Node", "node-00001")
    await cluster.run(3)
    cluster.create(next(make_nodes(1)))
    await cluster.settle()
    assert cluster.status("Pod", "a")["phase"] == "Running"


async def test_pod_of_a_job_on_a_deleted_node_is_counted_as_failed_and_run_again() -> None:
    cluster = LivingCluster(nodes=2)
    cluster.create(job("work", annotations={"run-for": "60s"}))
    await cluster.run(5)
    (victim,) = cluster.pods()
    cluster.delete("Node", victim["spec"]["nodeName"])
    await cluster.settle()
    status = cluster.status("Job", "work")
    assert (status["failed"], status["succeeded"]) == (1, 1)
    assert len(cluster.pods()) == 1


async def test_deleted_pod_on_a_node_that_is_gone_is_removed() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001"))
    await cluster.run(5)
    cluster.delete("Pod", "a")
    cluster.delete("Node", "node-00001")
    await cluster.settle()
    assert cluster.find("Pod", "a") is None


async def test_node_that_is_lost_again_gets_the_full_time_again() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001"))
    await cluster.run(5)
    cluster.delete("Node", "node-00001")
    await cluster.run(3)
    cluster.create(next(make_nodes(1)))
    await cluster.run(1)
    cluster.delete("Node", "node-00001")
    await cluster.run(4)
    assert cluster.find("Pod", "a") is not None
    await cluster.run(2)
    assert cluster.find("Pod", "a") is None
