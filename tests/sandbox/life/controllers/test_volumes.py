"""Claims get volumes: found, reserved or made; and what becomes of the volume when the claim goes."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.life.controllers.provisioner import PROVISIONER, standard_storage_class
from pilotage.sandbox.life.controllers.volume_match import smallest_fitting
from tests.sandbox.living_cluster import LivingCluster, pod

Object = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def claim(
    name: str, size: str = "1Gi", *, storage_class: str | None = "", node: str | None = None, **spec: Any
) -> Object:
    annotations = {"volume.kubernetes.io/selected-node": node} if node else {}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    if storage_class is not None:
        wanted["storageClassName"] = storage_class
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": wanted}


def volume(
    name: str, size: str = "1Gi", *, storage_class: str = "", labels: Object | None = None, **spec: Any
) -> Object:
    has = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "hostPath": {"path": "/d"}, **spec}
    has["storageClassName"] = storage_class
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": has}


def storage_class(name: str, mode: str, provisioner: str = PROVISIONER, **more: Any) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def volume_of(cluster: LivingCluster, name: str) -> str:
    """The volume of a claim; checks that both sides agree that they are bound."""
    bound = cluster.get("PersistentVolumeClaim", name)
    assert bound["status"]["phase"] == "Bound"
    assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    found: str = bound["spec"]["volumeName"]
    other = cluster.get("PersistentVolume", found)
    assert other["status"]["phase"] == "Bound"
    assert other["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert bound["status"]["capacity"] == other["spec"]["capacity"]
    return found


async def test_claim_takes_the_smallest_volume_that_is_large_enough() -> None:
    cluster = LivingCluster()
    for name, size in [("large", "10Gi"), ("small", "1Gi"), ("right", "5Gi")]:
        cluster.create(volume(name, size))
    cluster.create(claim("data", "4Gi"))
    await cluster.settle()
    assert volume_of(cluster, "data") == "right"
    assert cluster.status("PersistentVolume", "large")["phase"] == "Available"


async def test_claim_waits_for_a_volume_that_fits() -> None:
    cluster = LivingCluster()
    cluster.create(volume("small"))
    cluster.create(claim("data", "4Gi"))
    await cluster.settle()
    assert cluster.status("PersistentVolumeClaim", "data")["phase"] == "Pending"
    cluster.create(volume("large", "10Gi"))
    await cluster.settle()
    assert volume_of(cluster, "data") == "large"


@pytest.mark.parametrize(
    ("has", "wants"),
    [
        ({"storage_class": "other"}, {}),
        ({"size": "512Mi"}, {}),
        ({"volumeMode": "Block"}, {}),
        ({}, {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}),
        ({"labels": {"disk": "slow"}}, {"selector": {"matchLabels": {"disk": "fast"}}}),
        ({"claimRef": {"namespace": "default", "name": "other"}}, {}),
        ({"volumeAttributesClassName": "gold"}, {}),
    ],
    ids=["class", "size", "mode", "access", "labels", "reserved", "attributes"],
)
def test_volume_that_does_not_match_is_not_taken(has: Object, wants: Object) -> None:
    assert smallest_fitting(claim("data"), [volume("good")]) is not None
    assert smallest_fitting(claim("data", **wants), [volume("v", **has)]) is None


async def test_two_claims_never_get_the_same_volume() -> None:
    cluster = LivingCluster()
    cluster.create(volume("only"))
    cluster.create(claim("first"))
    cluster.create(claim("second"))
    await cluster.settle()
    phases = [cluster.status("PersistentVolumeClaim", name)["phase"] for name in ("first", "second")]
    assert sorted(phases) == ["Bound", "Pending"]


async def test_claim_that_names_its_volume_gets_it_and_no_other() -> None:
    cluster = LivingCluster()
    cluster.create(volume("other"))
    cluster.create(claim("data", volumeName="mine"))
    await cluster.settle()
    assert cluster.status("PersistentVolumeClaim", "data")["phase"] == "Pending"
    cluster.create(volume("mine", "7Gi"))
    await cluster.settle()
    assert volume_of(cluster, "data") == "mine"


async def test_volume_reserved_for_a_claim_is_kept_for_it() -> None:
    cluster = LivingCluster()
    reserved = {"namespace": "default", "name": "data"}
    cluster.create(volume("kept", claimRef=reserved))
    cluster.create(claim("stranger"))
    await cluster.settle()
    assert cluster.status("PersistentVolumeClaim", "stranger")["phase"] == "Pending"
    cluster.create(claim("data"))
    await cluster.settle()
    assert volume_of(cluster, "data") == "kept"


async def test_class_that_binds_immediately_makes_a_volume() -> None:
    cluster = LivingCluster()
    cluster.create(storage_class("now", "Immediate"))
    cluster.create(claim("data", "3Gi", storage_class="now"))
    await cluster.settle()
    made = cluster.get("PersistentVolume", volume_of(cluster, "data"))
    assert made["spec"]["capacity"] == {"storage": "3Gi"} and "nodeAffinity" not in made["spec"]
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"


async def test_standard_class_is_the_default_and_waits_for_the_node_that_the_scheduler_chooses() -> None:
    cluster = LivingCluster(nodes=3)
    cluster.create(standard_storage_class())
    cluster.create(claim("data", storage_class=None))
    await cluster.settle()
    found = cluster.get("PersistentVolumeClaim", "data")
    assert (found["spec"]["storageClassName"], found["status"]["phase"]) == ("standard", "Pending")
    found["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "node-00002"}
    cluster.api.update("persistentvolumeclaims", "default", "data", found)
    await cluster.settle()
    made = cluster.get("PersistentVolume", volume_of(cluster, "data"))
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["zone-2"]}]


async def test_a_selected_node_that_is_gone_is_taken_off_the_claim() -> None:
    """The scheduler waits for the volume or for this; the claim would wait for ever, even if the node came back."""
    cluster = LivingCluster(nodes=1)
    cluster.create(standard_storage_class())
    cluster.create(claim("data", storage_class="standard", node="gone"))
    await cluster.settle()
    found = cluster.get("PersistentVolumeClaim", "data")
    assert not found["metadata"].get("annotations") and found["status"]["phase"] == "Pending"
    found["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "node-00001"}
    cluster.api.update("persistentvolumeclaims", "default", "data", found)
    await cluster.settle()
    assert volume_of(cluster, "data")


async def test_class_may_ask_for_volumes_of_one_node() -> None:
    cluster = LivingCluster(nodes=2)
    hostname = "kubernetes.io/hostname"
    cluster.create(storage_class("local", "WaitForFirstConsumer", parameters={"topologyKey": hostname}))
    cluster.create(claim("data", storage_class="local", node="node-00002"))
    await cluster.settle()
    made = cluster.get("PersistentVolume", volume_of(cluster, "data"))
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": hostname, "operator": "In", "values": ["node-00002"]}]


async def test_waiting_class_takes_a_free_volume_only_when_the_scheduler_reserves_it() -> None:
    cluster = LivingCluster()
    cluster.create(storage_class("static", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"))
    cluster.create(volume("disk", storage_class="static"))
    cluster.create(claim("data", storage_class="static"))
    await cluster.settle()
    assert cluster.status("PersistentVolumeClaim", "data")["phase"] == "Pending"
    reserved = cluster.get("PersistentVolume", "disk")
    uid = cluster.get("PersistentVolumeClaim", "data")["metadata"]["uid"]
    reserved["spec"]["claimRef"] = {"namespace": "default", "name": "data", "uid": uid}
    cluster.api.update("persistentvolumes", "", "disk", reserved)
    await cluster.settle()
    assert volume_of(cluster, "data") == "disk"


async def test_class_of_another_provisioner_is_left_to_it() -> None:
    cluster = LivingCluster()
    cluster.create(storage_class("foreign", "Immediate", "example.com/disks"))
    cluster.create(claim("data", storage_class="foreign"))
    await cluster.settle()
    assert cluster.status("PersistentVolumeClaim", "data")["phase"] == "Pending"
    assert cluster.names("PersistentVolume") == []


async def test_claim_waits_for_its_class() -> None:
    cluster = LivingCluster()
    cluster.create(claim("data", storage_class="later"))
    await cluster.settle()
    cluster.create(storage_class("later", "Immediate"))
    await cluster.settle()
    volume_of(cluster, "data")


async def test_volume_of_a_deleted_claim_is_deleted_or_released_as_its_policy_says() -> None:
    cluster = LivingCluster()
    cluster.create(volume("thrown-away", persistentVolumeReclaimPolicy="Delete"))
    cluster.create(volume("kept", "2Gi", persistentVolumeReclaimPolicy="Retain"))
    cluster.create(claim("a"))
    cluster.create(claim("b", "2Gi"))
    await cluster.settle()
    for name in ("a", "b"):
        cluster.delete("PersistentVolumeClaim", name)
    cluster.create(claim("b", "2Gi"))
    await cluster.settle()
    assert cluster.names("PersistentVolume") == ["kept"]
    assert cluster.status("PersistentVolume", "kept")["phase"] == "Released"
    assert cluster.status("PersistentVolumeClaim", "b")["phase"] == "Pending"


async def test_claim_whose_volume_is_gone_is_lost() -> None:
    cluster = LivingCluster()
    cluster.create(volume("v"))
    cluster.create(claim("data"))
    await cluster.settle()
    found = cluster.get("PersistentVolume", "v")
    found["metadata"].pop("finalizers", None)
    cluster.api.update("persistentvolumes", "", "v", found)
    cluster.delete("PersistentVolume", "v")
    await cluster.settle()
    assert cluster.status("PersistentVolumeClaim", "data")["phase"] == "Lost"


async def test_ephemeral_volume_gets_a_claim_that_goes_with_its_pod() -> None:
    cluster = LivingCluster()
    cluster.create(storage_class("now", "Immediate"))
    wanted = {"metadata": {"labels": {"kind": "scratch"}}, "spec": claim("x", storage_class="now")["spec"]}
    cluster.create(pod("a", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": wanted}}]))
    await cluster.settle()
    volume_of(cluster, "a-scratch")
    made = cluster.get("PersistentVolumeClaim", "a-scratch")
    assert made["metadata"]["labels"] == {"kind": "scratch"}
    assert made["metadata"]["ownerReferences"][0]["name"] == "a"
    cluster.delete("Pod", "a")
    await cluster.settle()
    assert cluster.names("PersistentVolumeClaim") == [] and cluster.names("PersistentVolume") == []


async def test_ephemeral_claim_deleted_under_its_pod_is_made_anew_and_a_foreign_one_is_left_alone() -> None:
    cluster = LivingCluster()
    wanted = {"spec": claim("x")["spec"]}
    cluster.create(claim("b-scratch"))
    for name in ("a", "b"):
        cluster.create(pod(name, volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": wanted}}]))
    await cluster.settle()
    cluster.delete("PersistentVolumeClaim", "a-scratch")
    await cluster.settle()
    assert cluster.names("PersistentVolumeClaim") == ["a-scratch", "b-scratch"]
    assert "ownerReferences" not in cluster.get("PersistentVolumeClaim", "b-scratch")["metadata"]


@pytest.mark.parametrize(("kind", "name"), [("PersistentVolumeClaim", "data"), ("PersistentVolume", "only")])
async def test_bound_pair_that_says_something_else_is_put_right(kind: str, name: str) -> None:
    cluster = LivingCluster()
    cluster.create(volume("only"))
    cluster.create(claim("data"))
    await cluster.settle()
    before = cluster.store.revision
    await cluster.settle()
    assert cluster.store.revision == before, "what is bound is left alone"
    obj = cluster.get(kind, name)
    obj["status"]["phase"] = "Pending"
    resource = "persistentvolumes" if kind == "PersistentVolume" else "persistentvolumeclaims"
    cluster.api.update(resource, "" if kind == "PersistentVolume" else "default", name, obj, "status")
    await cluster.settle()
    assert volume_of(cluster, "data") == "only"


async def test_volume_that_names_another_claim_from_now_on_loses_its_first_one() -> None:
    cluster = LivingCluster()
    cluster.create(volume("only"))
    cluster.create(claim("data"))
    await cluster.settle()
    cluster.delete("PersistentVolume", "only")
    cluster.create(volume("only", claimRef={"namespace": "default", "name": "other"}))
    await cluster.settle()
    assert cluster.status("PersistentVolumeClaim", "data")["phase"] == "Lost"
