"""Volumes and devices for tests, and the controllers that a bare API server does not have."""

from __future__ import annotations

from .client import Json
from .objects import pod
from .servers import eventually
from .world import World

DRIVER = "gpu.example.com"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def late_binding_class() -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def local_volume(name: str, node_name: str) -> Json:
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
        "status": {"phase": "Available"},
    }


def volume_claim(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def pod_with_volume(name: str, claim: str) -> Json:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


def play_volume_controller(world: World, claim: str) -> str:
    """Wait until the scheduler has chosen a volume for the claim, and complete the binding; returns the volume."""

    def chosen() -> str:
        for volume in world.api.list("persistentvolumes"):
            if volume["spec"].get("claimRef", {}).get("name") == claim:
                return str(volume["metadata"]["name"])
        return ""

    name: str = eventually(f"a volume is chosen for {claim}", chosen)
    change = {"metadata": {"annotations": BOUND}, "spec": {"volumeName": name}}
    world.api.patch("persistentvolumeclaims", claim, change)
    world.api.patch("persistentvolumeclaims", claim, {"status": {"phase": "Bound"}}, subresource="status")
    world.api.patch("persistentvolumes", name, {"status": {"phase": "Bound"}}, subresource="status")
    return name


def device_class() -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def devices(node_name: str, *names: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": name} for name in names],
        },
    }


def device_claim(name: str) -> Json:
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": wanted}]}},
    }


def pod_with_device(name: str, claim: str) -> Json:
    made = pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made
