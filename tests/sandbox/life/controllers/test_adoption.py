"""Labels decide who controls what: orphans that match are adopted, children that do not match any more are let go."""

from __future__ import annotations

from typing import Any

from tests.sandbox.living_cluster import LivingCluster, daemon_set, deployment, job, pod, replica_set, stateful_set

Object = dict[str, Any]


def controller(obj: Object) -> tuple[str, str] | None:
    references = obj["metadata"].get("ownerReferences") or ()
    return next(((one["kind"], one["name"]) for one in references if one.get("controller")), None)


def relabel(cluster: LivingCluster, name: str, **labels: str) -> None:
    found = cluster.get("Pod", name)
    found["metadata"]["labels"] = labels
    cluster.api.update("pods", "default", name, found)


async def test_orphans_are_adopted_whether_they_or_the_set_came_first() -> None:
    cluster = LivingCluster()
    cluster.create(pod("web"))
    cluster.create(replica_set("web", 2))
    await cluster.settle()
    assert controller(cluster.get("Pod", "web")) == ("ReplicaSet", "web")
    assert len(cluster.pods()) == 2
    late = pod("late")
    late["metadata"]["labels"] = {"app": "web"}
    cluster.create(late)
    await cluster.settle()
    assert len(cluster.pods()) == 2, "one too many is deleted"


async def test_pod_that_does_not_match_any_more_is_released_and_replaced() -> None:
    cluster = LivingCluster()
    cluster.create(replica_set("web", 1))
    await cluster.settle()
    (name,) = cluster.names("Pod")
    relabel(cluster, name, app="other")
    await cluster.settle()
    assert controller(cluster.get("Pod", name)) is None
    assert len(cluster.pods(app="web")) == 1
    assert cluster.status("ReplicaSet", "web")["replicas"] == 1


async def test_replication_controller_keeps_its_replicas_and_adopts() -> None:
    cluster = LivingCluster()
    cluster.create(pod("web"))
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"app": "web"}, "template": template}
    cluster.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"}, "spec": spec})
    await cluster.settle()
    assert controller(cluster.get("Pod", "web")) == ("ReplicationController", "web")
    assert cluster.status("ReplicationController", "web")["readyReplicas"] == 3


async def test_job_adopts_its_orphan_and_releases_what_is_relabelled() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", annotations={"run-for": "1h"}, parallelism=1, completions=1))
    await cluster.run(5)
    (name,) = cluster.names("Pod")
    orphan = cluster.get("Pod", name)
    del orphan["metadata"]["ownerReferences"]
    cluster.api.update("pods", "default", name, orphan)
    await cluster.run(5)
    assert controller(cluster.get("Pod", name)) == ("Job", "work")
    relabel(cluster, name, app="stray")
    await cluster.run(5)
    stray = cluster.get("Pod", name)
    assert controller(stray) is None and "finalizers" not in stray["metadata"]
    assert len(cluster.pods(app="work")) == 1, "the Job has made another one"


async def test_stateful_set_adopts_only_pods_that_bear_its_names() -> None:
    cluster = LivingCluster()
    for name in ("web-0", "stranger"):
        orphan = pod(name)
        orphan["metadata"]["labels"] = {"app": "web"}
        cluster.create(orphan)
    cluster.create(stateful_set("web", 1))
    await cluster.settle()
    assert controller(cluster.get("Pod", "stranger")) is None
    assert controller(cluster.get("Pod", "web-0")) == ("StatefulSet", "web")


async def test_deployment_adopts_a_replica_set_that_was_orphaned() -> None:
    cluster = LivingCluster()
    cluster.create(deployment("web", 2))
    await cluster.settle()
    (name,) = cluster.names("ReplicaSet")
    cluster.delete("Deployment", "web", propagationPolicy="Orphan")
    await cluster.settle()
    assert controller(cluster.get("ReplicaSet", name)) is None
    cluster.create(deployment("web", 2))
    await cluster.settle()
    assert cluster.names("ReplicaSet") == [name]
    assert controller(cluster.get("ReplicaSet", name)) == ("Deployment", "web")


async def test_daemon_set_takes_its_pods_back() -> None:
    cluster = LivingCluster(nodes=2)
    cluster.create(daemon_set("agent"))
    await cluster.settle()
    before = cluster.names("Pod")
    cluster.delete("DaemonSet", "agent", propagationPolicy="Orphan")
    await cluster.settle()
    cluster.create(daemon_set("agent"))
    await cluster.settle()
    assert cluster.names("Pod") == before and len(before) == 2
