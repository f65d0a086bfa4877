"""Volumes are bound and devices released as controllers of a cluster would do it."""

from __future__ import annotations

from pathlib import Path

from tests.lab.worlds import node, played, pod, put, story

DEVICE_CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "n-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    },
}


def device_claim(name: str) -> dict[str, object]:
    wanted = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [wanted]}},
    }


def test_a_device_is_free_when_the_pod_that_used_it_has_ended(tmp_path: Path) -> None:
    users = [
        pod(name).spec(resourceClaims=[{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]) for name in ("one", "two")
    ]
    result = played(
        tmp_path,
        put(0, node("n")),
        put(0, DEVICE_CLASS),
        put(0, SLICE),
        put(0, device_claim("one-gpu")),
        put(0, device_claim("two-gpu")),
        put(1, users[0], runs=100),
        put(2, users[1], runs=100),
    )
    assert story(result, "one")["bound"] == 1 and story(result, "one")["ended"] == 101
    assert story(result, "two")["bound"] >= 101 and story(result, "two")["end"] == "ended"


def test_a_volume_is_made_for_a_claim_that_waits_for_its_first_pod(tmp_path: Path) -> None:
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    result = played(
        tmp_path,
        put(0, node("a")),
        put(0, node("b")),
        put(0, storage_class),
        put(0, claim),
        put(1, pod("first").spec(volumes=volumes), runs=10),
        put(30, pod("again").spec(volumes=volumes), runs=10),
    )
    first, again = story(result, "first"), story(result, "again")
    assert first["bound"] == 1 and again["bound"] == 30
    assert again["node"] == first["node"], "where its volume is"
