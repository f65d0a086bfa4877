"""A PodGroup that is deleted stays until its last live pod has ended."""

from __future__ import annotations

import pytest

from tests.sandbox.living_cluster import LivingCluster, member, pod_group

FINALIZER = "scheduling.k8s.io/podgroup-protection"


async def test_a_group_without_pods_goes_at_once() -> None:
    cluster = LivingCluster()
    cluster.create(pod_group("g"))
    cluster.create(member("elsewhere", "other"))
    cluster.delete("PodGroup", "g")
    assert cluster.get("PodGroup", "g")["metadata"]["finalizers"] == [FINALIZER]
    await cluster.settle()
    assert cluster.find("PodGroup", "g") is None


@pytest.mark.parametrize("binds", [True, False], ids=["running", "pending"])
async def test_a_group_waits_until_its_last_pod_is_gone(binds: bool) -> None:
    cluster = LivingCluster(binds=binds)
    cluster.create(pod_group("g", 2))
    for name in "ab":
        cluster.create(member(name, "g"))
    await cluster.run(5)
    cluster.delete("PodGroup", "g")
    cluster.delete("Pod", "a")
    await cluster.settle()
    kept = cluster.get("PodGroup", "g")["metadata"]
    assert kept["deletionTimestamp"] and kept["finalizers"] == [FINALIZER]
    cluster.delete("Pod", "b")
    await cluster.settle()
    assert cluster.find("PodGroup", "g") is None


async def test_pods_that_have_ended_hold_nothing() -> None:
    cluster = LivingCluster()
    cluster.create(pod_group("g"))
    cluster.create(member("short", "g", restartPolicy="Never"))
    obj = cluster.get("Pod", "short")
    obj["metadata"]["annotations"] = {"sandbox.pilotage.dev/run-for": "20s"}
    cluster.api.update("pods", "default", "short", obj)
    await cluster.run(10)
    cluster.delete("PodGroup", "g")
    await cluster.run(5)
    assert cluster.find("PodGroup", "g") is not None
    await cluster.settle()
    assert cluster.status("Pod", "short")["phase"] == "Succeeded"
    assert cluster.find("PodGroup", "g") is None


async def test_pods_of_a_namesake_in_another_namespace_hold_nothing() -> None:
    cluster = LivingCluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    cluster.create(pod_group("g"))
    cluster.create(member("a", "g"), "n")
    cluster.delete("PodGroup", "g")
    await cluster.settle()
    assert cluster.find("PodGroup", "g") is None


async def test_a_restart_in_between_forgets_nothing() -> None:
    first = LivingCluster()
    first.create(pod_group("g"))
    first.create(member("a", "g"))
    await first.run(5)
    first.delete("PodGroup", "g")
    await first.settle()
    first.life.stop()
    again = LivingCluster(nodes=0, store=first.store)
    await again.settle()
    assert again.find("PodGroup", "g") is not None
    again.delete("Pod", "a")
    await again.settle()
    assert again.find("PodGroup", "g") is None


async def test_a_namespace_takes_groups_and_members_with_it() -> None:
    cluster = LivingCluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    cluster.create(pod_group("g"), "n")
    cluster.create(member("a", "g"), "n")
    await cluster.run(5)
    cluster.delete("Namespace", "n")
    await cluster.settle()
    assert cluster.all("PodGroup") == [] and cluster.find("Namespace", "n") is None
