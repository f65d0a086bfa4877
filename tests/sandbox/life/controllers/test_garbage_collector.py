"""What nobody owns goes, in the background, in the foreground or not at all, as the deletion asked."""

from __future__ import annotations

from typing import Any

from tests.sandbox.living_cluster import LivingCluster, deployment, replica_set

Object = dict[str, Any]


def config(name: str, *owners: Object, finalizers: list[str] | None = None) -> Object:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    metadata = {"name": name, "ownerReferences": references, "finalizers": finalizers or []}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def names(cluster: LivingCluster) -> list[str]:
    return cluster.names("ConfigMap")


async def test_dependents_of_a_gone_owner_are_deleted_down_the_chain() -> None:
    cluster = LivingCluster()
    top = cluster.create(config("top"))
    middle = cluster.create(config("middle", top))
    cluster.create(config("bottom", middle))
    cluster.create(config("other"))
    await cluster.settle()
    cluster.delete("ConfigMap", "top", propagationPolicy="Background")
    assert names(cluster) == ["bottom", "middle", "other"]
    await cluster.settle()
    assert names(cluster) == ["other"]


async def test_object_created_for_an_owner_that_does_not_exist_is_deleted() -> None:
    cluster = LivingCluster()
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone", "uid": "no-such-uid"}}
    cluster.create(config("lost", gone))
    await cluster.settle()
    assert names(cluster) == []


async def test_namesake_of_the_owner_does_not_keep_the_dependent() -> None:
    cluster = LivingCluster()
    cluster.create(config("child", cluster.create(config("parent"))))
    await cluster.settle()
    cluster.delete("ConfigMap", "parent")
    cluster.create(config("parent"))
    await cluster.settle()
    assert names(cluster) == ["parent"]


async def test_owner_in_another_namespace_is_no_owner() -> None:
    cluster = LivingCluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    elsewhere = cluster.create(config("parent"), "other")
    cluster.create(config("child", elsewhere))
    await cluster.settle()
    assert names(cluster) == ["parent"]


async def test_object_stays_as_long_as_one_owner_does_and_forgets_the_other() -> None:
    cluster = LivingCluster()
    first, second = cluster.create(config("first")), cluster.create(config("second"))
    cluster.create(config("child", first, second))
    await cluster.settle()
    cluster.delete("ConfigMap", "first")
    await cluster.settle()
    references = cluster.get("ConfigMap", "child")["metadata"]["ownerReferences"]
    assert [reference["name"] for reference in references] == ["second"]
    cluster.delete("ConfigMap", "second")
    await cluster.settle()
    assert names(cluster) == []


async def test_foreground_deletion_keeps_the_owner_until_its_dependents_are_gone() -> None:
    cluster = LivingCluster()
    top = cluster.create(config("top"))
    middle = cluster.create(config("middle", top))
    cluster.create(config("bottom", middle, finalizers=["example.com/hold"]))
    await cluster.settle()
    cluster.delete("ConfigMap", "top", propagationPolicy="Foreground")
    await cluster.settle()
    assert names(cluster) == ["bottom", "middle", "top"]
    held = cluster.get("ConfigMap", "bottom")
    assert held["metadata"]["deletionTimestamp"]
    held["metadata"]["finalizers"] = []
    cluster.api.update("configmaps", "default", "bottom", held)
    await cluster.settle()
    assert names(cluster) == []


async def test_dependent_that_does_not_block_does_not_hold_up_the_owner() -> None:
    cluster = LivingCluster()
    child = config("child", cluster.create(config("parent")), finalizers=["example.com/hold"])
    child["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = False
    cluster.create(child)
    cluster.delete("ConfigMap", "parent", propagationPolicy="Foreground")
    await cluster.settle()
    assert names(cluster) == ["child"]
    assert cluster.get("ConfigMap", "child")["metadata"]["deletionTimestamp"]


async def test_orphaned_dependents_stay_without_their_owner() -> None:
    cluster = LivingCluster()
    cluster.create(replica_set("web", 70))
    await cluster.settle()
    cluster.delete("ReplicaSet", "web", propagationPolicy="Orphan")
    await cluster.settle()
    assert cluster.find("ReplicaSet", "web") is None
    assert len(cluster.pods(phase="Running")) == 70
    assert not any(pod["metadata"].get("ownerReferences") for pod in cluster.pods())


async def test_foreground_deletion_of_a_deployment_waits_for_the_last_pod() -> None:
    cluster = LivingCluster()
    cluster.create(deployment("web", 60))
    await cluster.settle()
    cluster.delete("Deployment", "web", propagationPolicy="Foreground")
    await cluster.run(0.4)
    assert len(cluster.pods()) == 60 and cluster.find("Deployment", "web") is not None
    await cluster.settle()
    assert cluster.pods() == [] and cluster.names("ReplicaSet") == []
    assert cluster.find("Deployment", "web") is None


async def test_deletion_that_began_before_a_restart_is_finished() -> None:
    first = LivingCluster()
    first.create(config("child", first.create(config("parent"))))
    first.life.stop()
    first.delete("ConfigMap", "parent")
    second = LivingCluster(nodes=0, store=first.store)
    await second.settle()
    assert names(second) == []


async def test_deleted_namespace_takes_everything_with_it() -> None:
    cluster = LivingCluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.create(deployment("web", 3), "team")
    cluster.create(deployment("web", 1))
    await cluster.settle()
    cluster.delete("Namespace", "team")
    await cluster.settle()
    assert cluster.find("Namespace", "team") is None
    assert {pod["metadata"]["namespace"] for pod in cluster.pods()} == {"default"}
    assert len(cluster.all("ReplicaSet")) == 1
