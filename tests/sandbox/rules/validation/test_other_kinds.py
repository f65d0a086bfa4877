"""Services, storage, policies, devices, configuration and Kueue's kinds: one table of mistakes each."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create, validate_update


def obj(kind: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **copy.deepcopy(fields)}


def service(**spec: Any) -> dict[str, Any]:
    return obj("Service", spec={"ports": [{"port": 80, "protocol": "TCP"}], **spec})


def claim(**spec: Any) -> dict[str, Any]:
    full = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return obj("PersistentVolumeClaim", spec=full)


def volume(**spec: Any) -> dict[str, Any]:
    full = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}, **spec}
    return obj("PersistentVolume", spec=full)


def priority_class(name: str = "x", **fields: Any) -> dict[str, Any]:
    return {**obj("PriorityClass", "scheduling.k8s.io/v1", **fields), "metadata": {"name": name}}


def budget(**spec: Any) -> dict[str, Any]:
    return obj("PodDisruptionBudget", "policy/v1", spec=spec)


def device_claim(*requests: Any, constraints: Any = None) -> dict[str, Any]:
    return obj(
        "ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": requests, "constraints": constraints}}
    )


def resource_slice(**spec: Any) -> dict[str, Any]:
    full = {"driver": "d", "pool": {"name": "p"}, "nodeName": "n", **spec}
    return obj("ResourceSlice", "resource.k8s.io/v1", spec=full)


MISTAKES: list[tuple[dict[str, Any], list[str]]] = [
    (service(), []),
    (service(ports=None, clusterIP="None"), []),
    (service(type="ExternalName", externalName="a.b", ports=None), []),
    (service(ports=[]), ["spec.ports: Required value"]),
    (service(type="ExternalName"), ["spec.externalName: Required value"]),
    (
        service(type="Mesh"),
        [
            'spec.type: Unsupported value: "Mesh": '
            'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
        ],
    ),
    (
        service(ports=[{"port": 0, "protocol": "TCP"}]),
        ["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"],
    ),
    (
        service(ports=[{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "TCP", "name": "b"}]),
        ["spec.ports[0].name: Required value", 'spec.ports[1]: Duplicate value: "1/TCP"'],
    ),
    (obj("ConfigMap", data={"a/b": ""}), ["data[a/b]"]),
    (obj("ConfigMap", data={"a": "x" * 1_048_577}), ["data"]),
    (obj("Secret", data={"a": "not base64!"}), ["data[a]"]),
    (claim(), []),
    (claim(accessModes=[]), ["spec.accessModes: Required value: at least 1 access mode is required"]),
    (claim(resources={}), ["spec.resources[storage]: Required value"]),
    (
        claim(resources={"requests": {"storage": "0"}}),
        ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
    ),
    (
        claim(accessModes=["ReadWriteOncePod", "ReadOnlyMany"]),
        ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    ),
    (volume(), []),
    (volume(capacity=None), ["spec.capacity: Required value"]),
    (
        volume(nodeAffinity={}),
        ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
    ),
    (obj("StorageClass", "storage.k8s.io/v1"), ["provisioner: Required value"]),
    (
        obj("StorageClass", "storage.k8s.io/v1", provisioner="p", volumeBindingMode="Later"),
        ['volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"'],
    ),
    (
        obj("CSINode", "storage.k8s.io/v1", spec={"drivers": [{"name": "a", "nodeID": "n"}, {"name": "a"}]}),
        ['spec.drivers[1].name: Duplicate value: "a"', "spec.drivers[1].nodeID: Required value"],
    ),
    (obj("CSIStorageCapacity", "storage.k8s.io/v1", capacity="-1"), ["storageClassName: Required value", "capacity"]),
    (
        obj("VolumeAttachment", "storage.k8s.io/v1", spec={"nodeName": "n"}),
        ["spec.attacher: Required value", "spec.source: Required value"],
    ),
    (priority_class(value=1_000_000_000), []),
    (priority_class("system-node-critical", value=2_000_001_000), []),
    (
        priority_class(value=1_000_000_001),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    (
        priority_class("system-mine", value=1),
        [
            "metadata.name: Forbidden: "
            "priority class names with 'system-' prefix are reserved for system use only"
        ],
    ),
    (budget(minAvailable="50%", selector={}), []),
    (
        budget(minAvailable=1, maxUnavailable=1),
        ["spec: Invalid value: {}: minAvailable and maxUnavailable cannot be both set"],
    ),
    (budget(minAvailable="101%"), ['spec.minAvailable: Invalid value: "101%": must not be greater than 100%']),
    (budget(maxUnavailable=-1), ["spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"]),
    (
        obj("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0}),
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    (device_claim({"name": "r", "exactly": {"deviceClassName": "c"}}), []),
    (
        device_claim({"name": "r", "exactly": {}}, {"name": "r"}),
        [
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
            'spec.devices.requests[1].name: Duplicate value: "r"',
            "spec.devices.requests[1]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        ],
    ),
    (
        device_claim(
            {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 0}},
            constraints=[{"requests": ["zz"], "matchAttribute": "a/b"}],
        ),
        [
            "spec.devices.requests[0].exactly.count: Invalid value: 0: must be greater than zero",
            'spec.devices.constraints[0].requests[0]: Not found: "zz"',
        ],
    ),
    (resource_slice(), []),
    (
        resource_slice(allNodes=True, devices=[{"name": "A"}]),
        ["spec: Required value: exactly one of `nodeName`", "spec.devices[0].name"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "expected"), MISTAKES, ids=[f"{row[0]['kind']}-{n}" for n, row in enumerate(MISTAKES)]
)
def test_mistakes(wrong: dict[str, Any], expected: list[str]) -> None:
    found = [str(error) for error in validate_create(wrong["kind"], wrong)]
    assert len(found) == len(expected), found
    for message, beginning in zip(found, expected, strict=True):
        assert message.startswith(beginning)


CHANGES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (service(clusterIP="10.0.0.1"), service(clusterIP="10.0.0.2"), ["spec.clusterIPs[0]"]),
    (obj("ConfigMap", data={"a": "b"}), obj("ConfigMap", data={"a": "c"}), []),
    (
        obj("ConfigMap", data={"a": "b"}, immutable=True),
        obj("ConfigMap", data={"a": "c"}, immutable=True),
        ["data"],
    ),
    (obj("Secret", type="Opaque"), obj("Secret", type="other"), ["type"]),
    (claim(), claim(volumeName="pv", storageClassName="sc"), []),
    (claim(storageClassName="a"), claim(storageClassName="b"), ["spec"]),
    (claim(), claim(resources={"requests": {"storage": "2Gi"}}), []),
    (claim(), claim(resources={"requests": {"storage": "1Mi"}}), ["spec.resources.requests.storage"]),
    (claim(), claim(accessModes=["ReadOnlyMany"]), ["spec"]),
    (volume(), volume(claimRef={"name": "c"}), []),
    (volume(), volume(hostPath={"path": "/y"}), ["spec.persistentvolumesource"]),
    (
        obj("StorageClass", "storage.k8s.io/v1", provisioner="p", parameters={"a": "b"}),
        obj("StorageClass", "storage.k8s.io/v1", provisioner="q", parameters={"a": "b"}),
        ["provisioner"],
    ),
    (priority_class(value=1), priority_class(value=2), ["value"]),
    (priority_class(value=1), priority_class(value=1, description="d"), []),
    (
        device_claim({"name": "r", "exactly": {"deviceClassName": "c"}}),
        device_claim({"name": "s", "exactly": {"deviceClassName": "c"}}),
        ["spec"],
    ),
    (resource_slice(), resource_slice(pool={"name": "q"}), ["spec.pool.name"]),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), CHANGES, ids=[f"{row[0]['kind']}-{n}" for n, row in enumerate(CHANGES)]
)
def test_changes(old: dict[str, Any], new: dict[str, Any], expected: list[str]) -> None:
    assert [error.path for error in validate_update(old["kind"], old, new)] == expected
