"""A cluster with storage for one plugin: objects in JSON as an API server has them, in one line each.

world = VolumeWorld(VolumeZone, node("a").zone("z1"))
world.put(volume("v", labels={ZONE: "z2"}), claim("c", volume_name="v"))
assert world.rejected(using("c")) == ["a"]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pilotage.api import CycleState, Reject, Skip
from pilotage.clock import SystemClock
from pilotage.cycle.handle import FrameworkHandle
from pilotage.model import kind_of
from pilotage.testing import NodeBuilder, PodBuilder, pod
from tests.plugins.one_plugin import OnePlugin

Object = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


class VolumeWorld(OnePlugin):
    def __init__(self, make: Callable[..., Any], *nodes: NodeBuilder, pods: Sequence[PodBuilder] = ()) -> None:
        super().__init__(None, *nodes, pods=pods)
        self.handle = FrameworkHandle(self.cluster, SystemClock(), random.Random(1))
        self.plugin = make(self.handle)
        for name in self.cluster.nodes.names:
            self.cluster.put_object("Node", self.cluster.node(name))

    def put(self, *objects: Object) -> None:
        for raw in objects:
            self.cluster.put_object(raw["kind"], decoded(raw))

    def remove(self, raw: Object) -> None:
        self.cluster.remove_object(raw["kind"], decoded(raw).key)

    def messages(self, waiting: PodBuilder) -> dict[str, list[str]]:
        """Why each node is rejected, in words; by PreFilter for all of them alike."""
        answer = self.pre_filter(waiting)
        if isinstance(answer, Reject):
            return {name: [r.message for r in answer.reasons] for name in self.cluster.nodes.names}
        if isinstance(answer, Skip):
            return {name: [] for name in self.cluster.nodes.names}
        return {name: sorted(r.message for r in reasons) for name, reasons in self.reasons(waiting).items()}

    def rejected(self, waiting: PodBuilder) -> list[str]:
        return [name for name, messages in self.messages(waiting).items() if messages]

    def reserved(self, waiting: PodBuilder, node_name: str) -> CycleState:
        """The state after the pod was placed on this node."""
        state, built = CycleState(), waiting.build()
        assert self.plugin.pre_filter(state, built, self.cluster.nodes) is None
        assert self.plugin.reserve(state, built, node_name) is None
        return state


def decoded(raw: Object) -> Any:
    kind = kind_of(raw["kind"])
    assert kind is not None
    return kind.decode(msgspec.json.encode(raw))


def using(*claims: str, name: str = "p") -> PodBuilder:
    """A pod that mounts these claims."""
    return pod(name).spec(volumes=[{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims])


def mounting(name: str, *volumes: Object) -> PodBuilder:
    """A pod with inline volumes."""
    return pod(name).spec(volumes=[{"name": f"v{at}", **volume} for at, volume in enumerate(volumes)])


def claim(name: str, *, class_name: str = "", volume_name: str = "", size: str = "1Gi", **more: Any) -> Object:
    """Bound if it names a volume; `more` is for the metadata (annotations=...) or, capitalised there, the spec."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "resources": {"requests": {"storage": size}},
        **({"volumeName": volume_name} if volume_name else {}),
        **more.pop("spec", {}),
    }
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": "1", **more}
    if volume_name:
        metadata["annotations"] = {**BOUND, **metadata.get("annotations", {})}
    status = {"phase": "Bound" if volume_name else "Pending"}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def volume(name: str, *, class_name: str = "", size: str = "10Gi", at: Object | None = None, **more: Any) -> Object:
    """Free and available; `at` are labels with the values that a node may have."""
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    metadata |= {field: more.pop(field) for field in ("labels", "annotations", "deletionTimestamp") if field in more}
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": class_name, **more}
    if at is not None:
        expressions = [{"key": k, "operator": "In", "values": v} for k, v in at.items()]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return {"kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": {"phase": "Available"}}


def storage_class(name: str, *, waits: bool = True, provisioner: str = "csi.example.com", **more: Any) -> Object:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def csi_node(name: str, limits: dict[str, int | None], migrated: str = "") -> Object:
    drivers = [
        {"name": driver, "nodeID": name, **({} if count is None else {"allocatable": {"count": count}})}
        for driver, count in limits.items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return {"kind": "CSINode", "metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}


def csi_driver(name: str, **spec: Any) -> Object:
    return {"kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(name: str, class_name: str, amount: str, topology: Object | None, **more: Any) -> Object:
    metadata = {"namespace": "kube-system", "name": name}
    where = {} if topology is None else {"nodeTopology": topology}
    return {
        "kind": "CSIStorageCapacity",
        "metadata": metadata,
        "storageClassName": class_name,
        "capacity": amount,
        **where,
        **more,
    }


def attachment(name: str, node_name: str, volume_name: str, driver: str) -> Object:
    spec = {"attacher": driver, "nodeName": node_name, "source": {"persistentVolumeName": volume_name}}
    return {"kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}
