"""Quotas: what is used, what is too much, and what is given back."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from tests.sandbox.living_cluster import LivingCluster, condition, pod, replica_set

Object = dict[str, Any]


def quota(name: str = "q", scopes: list[str] | None = None, **hard: str) -> Object:
    limits = {key.replace("__", "/").replace("_", "."): amount for key, amount in hard.items()}
    spec: Object = {"hard": limits, **({"scopes": scopes} if scopes else {})}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def sized(name: str, cpu: str = "500m", memory: str = "200Mi", **spec: Any) -> Object:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return pod(name, containers=[{"name": "c", "image": "i", "resources": resources}], **spec)


def used(cluster: LivingCluster, name: str = "q") -> Object:
    found: Object = cluster.status("ResourceQuota", name)["used"]
    return found


async def test_life_of_a_pod_is_counted_and_what_is_too_much_rejected() -> None:
    cluster = LivingCluster()
    cluster.create(quota(pods="2", requests_cpu="1", memory="1Gi"))
    await cluster.settle()
    assert used(cluster) == {"pods": "0", "requests.cpu": "0", "memory": "0"}
    cluster.create(sized("a"))
    assert used(cluster) == {"pods": "1", "requests.cpu": "500m", "memory": "200Mi"}
    with pytest.raises(ApiError) as caught:
        cluster.create(sized("big", cpu="600m"))
    assert caught.value.code == 403
    assert caught.value.message == (
        'pods "big" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=500m, '
        "limited: requests.cpu=1"
    )
    with pytest.raises(ApiError, match=r"failed quota: q: must specify memory for: c; requests.cpu for: c"):
        cluster.create(pod("silent"))
    cluster.create(sized("b"))
    with pytest.raises(ApiError, match=r"requested: pods=1,requests.cpu=1m, used: pods=2,requests.cpu=1"):
        cluster.create(sized("c", cpu="1m"))
    await cluster.settle()
    cluster.delete("Pod", "a")
    await cluster.settle()
    assert used(cluster) == {"pods": "1", "requests.cpu": "500m", "memory": "200Mi"}


async def test_pods_that_have_ended_use_nothing_but_their_place() -> None:
    cluster = LivingCluster()
    cluster.create(quota(pods="5", count__pods="5"))
    cluster.create(pod("a", restartPolicy="Never", annotations={"run-for": "1s"}))
    await cluster.settle()
    assert used(cluster) == {"pods": "0", "count/pods": "1"}


async def test_services_secrets_claims_and_counts() -> None:
    cluster = LivingCluster()
    hard = {"services": "2", "services_nodeports": "1", "secrets": "1", "requests_storage": "2Gi",
            "count__deployments_apps": "0", "resourcequotas": "1"}  # fmt: skip
    cluster.create(quota(**hard))
    await cluster.settle()
    port = {"port": 80}
    for name, kind in (("a", "ClusterIP"), ("b", "NodePort")):
        spec = {"type": kind, "ports": [port]}
        cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "c"}
    cluster.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim})
    assert used(cluster) == {
        "services": "2", "services.nodeports": "1", "secrets": "1", "requests.storage": "1Gi",
        "count/deployments.apps": "0", "resourcequotas": "1",
    }  # fmt: skip
    with pytest.raises(ApiError, match="exceeded quota: q, requested: secrets=1"):
        cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}})
    cluster.delete("Service", "b")
    await cluster.settle()
    assert used(cluster)["services.nodeports"] == "0"


async def test_scopes_choose_the_pods_that_count() -> None:
    cluster = LivingCluster()
    for scope in ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort"):
        cluster.create(quota(scope.lower(), [scope], pods="1"))
    await cluster.settle()
    cluster.create(pod("short", activeDeadlineSeconds=100))
    cluster.create(sized("long"))
    counts = {name: used(cluster, name)["pods"] for name in cluster.names("ResourceQuota")}
    assert counts == {"terminating": "1", "notterminating": "1", "besteffort": "1", "notbesteffort": "1"}
    with pytest.raises(ApiError, match="exceeded quota"):
        cluster.create(pod("another"))


async def test_set_beyond_the_quota_says_so_and_goes_on_when_there_is_room() -> None:
    cluster = LivingCluster()
    cluster.create(quota(pods="2"))
    await cluster.settle()
    cluster.create(replica_set("web", 3))
    await cluster.run(5)
    assert len(cluster.pods()) == 2
    assert "exceeded quota" in condition(cluster.get("ReplicaSet", "web"), "ReplicaFailure")["message"]
    cluster.edit("ResourceQuota", "q", hard={"pods": "3"})
    await cluster.run(120)
    assert len(cluster.pods()) == 3
    assert condition(cluster.get("ReplicaSet", "web"), "ReplicaFailure") == {}


async def test_status_that_someone_wrote_is_put_right_and_a_dry_run_uses_nothing() -> None:
    cluster = LivingCluster()
    cluster.create(quota(pods="2"))
    await cluster.settle()
    cluster.api.create("pods", "default", pod("dry"), dry_run=True)
    assert used(cluster) == {"pods": "0"}
    found = cluster.get("ResourceQuota", "q")
    found["status"]["used"] = {"pods": "2"}
    cluster.api.update("resourcequotas", "default", "q", found, "status")
    await cluster.settle()
    assert used(cluster) == {"pods": "0"}


async def test_resize_is_charged_by_what_it_adds() -> None:
    cluster = LivingCluster()
    cluster.create(quota(requests_cpu="1", requests_memory="1Gi"))
    await cluster.settle()
    cluster.create(sized("a"))
    found = cluster.get("Pod", "a")
    requests = found["spec"]["containers"][0]["resources"]["requests"]
    requests["cpu"] = "1"
    cluster.api.update("pods", "default", "a", found, "resize")
    assert used(cluster)["requests.cpu"] == "1"
    found = cluster.get("Pod", "a")
    found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1100m"
    with pytest.raises(ApiError, match="exceeded quota"):
        cluster.api.update("pods", "default", "a", found, "resize")
