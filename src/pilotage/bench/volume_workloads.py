"""Workloads with volumes: one claim per pod, bound beforehand, or provisioned for the node that is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotage.bench.workloads import NAMESPACE, BenchWorkload, Object, bench_node, bench_pod
from pilotage.sandbox.life.controllers.provisioner import PROVISIONER
from pilotage.sandbox.life.controllers.volumes import VolumeController

_CSI_DRIVER = "ebs.csi.aws.com"
_IN_TREE = "kubernetes.io/aws-ebs"
_VOLUMES_PER_NODE = 39
_CLASS = "first-consumer"
_STORAGE = {"storage": "1Gi"}
_MODES = ["ReadOnlyMany"]
_DONE = {"pv.kubernetes.io/bind-completed": "true"}


def _csi_nodes(workload: BenchWorkload) -> Iterator[Object]:
    for number in range(workload.nodes):
        name = f"node-{number:05}"
        driver = {"name": _CSI_DRIVER, "nodeID": name, "allocatable": {"count": _VOLUMES_PER_NODE}}
        metadata: Object = {"name": name, "annotations": {}}
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": metadata,
            "spec": {"drivers": [driver]},
        }


def csi_objects(workload: BenchWorkload, pods: Iterable[int]) -> Iterator[Object]:
    """CSI nodes, and for each of these pods a claim that is bound."""
    yield from _csi_nodes(workload)
    for number in pods:
        source = {"csi": {"driver": _CSI_DRIVER, "volumeHandle": f"vol-{number:06}"}}
        yield from _bound_pair(number, source)


def _in_tree_objects(workload: BenchWorkload) -> Iterator[Object]:
    for node in _csi_nodes(workload):
        node["metadata"]["annotations"]["storage.alpha.kubernetes.io/migrated-plugins"] = _IN_TREE
        yield node
    for number in range(workload.pods):
        yield from _bound_pair(number, {"awsElasticBlockStore": {"volumeID": f"vol-{number:06}"}})


def _bound_pair(number: int, source: Object) -> Iterator[Object]:
    """A volume and its claim, as the volume controller leaves them."""
    volume, claim = f"pv-{number:06}", f"pvc-{number:06}"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": claim}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume, "annotations": _DONE},
        "spec": {
            "accessModes": _MODES,
            "capacity": _STORAGE,
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": reference,
            **source,
        },
        "status": {"phase": "Bound"},
    }
    bound = _claim(claim, "", _MODES)
    bound["metadata"]["annotations"] = _DONE
    bound["spec"]["volumeName"] = volume
    bound["status"] = {"phase": "Bound", "accessModes": _MODES, "capacity": _STORAGE}
    yield bound


def _claim(name: str, class_name: str, modes: list[str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"accessModes": modes, "storageClassName": class_name, "resources": {"requests": _STORAGE}},
    }


def _waiting_objects(workload: BenchWorkload) -> Iterator[Object]:
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    for number in range(workload.pods):
        yield _claim(f"pvc-{number:06}", _CLASS, ["ReadWriteOnce"])


def _with_volume(number: int) -> Object:
    return with_claim(bench_pod(f"pod-{number:06}"), number)


def with_claim(pod: Object, number: int) -> Object:
    """The pod, with the claim of this number."""
    pod["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": f"pvc-{number:06}"}}]
    return pod


def _init(number: int) -> Object:
    return bench_pod(f"init-{number:06}")


VOLUME_WORKLOADS = (
    BenchWorkload(
        name="SchedulingInTreePVs",
        about="pods with a bound in-tree volume each, on nodes that have moved to its CSI driver",
        nodes=5000,
        init_pods=1000,
        pods=5000,
        make_node=bench_node,
        make_init_pod=_init,
        make_pod=_with_volume,
        make_objects=_in_tree_objects,
    ),
    BenchWorkload(
        name="SchedulingCSIPVs",
        about="pods with a bound CSI volume each",
        nodes=5000,
        init_pods=1000,
        pods=5000,
        make_node=bench_node,
        make_init_pod=_init,
        make_pod=_with_volume,
        make_objects=lambda workload: csi_objects(workload, range(workload.pods)),
    ),
    BenchWorkload(
        name="SchedulingWaitForFirstConsumer",
        about="pods with a volume each that is provisioned for the chosen node",
        nodes=5000,
        init_pods=1000,
        pods=5000,
        make_node=bench_node,
        make_init_pod=_init,
        make_pod=_with_volume,
        make_objects=_waiting_objects,
        controllers=(VolumeController,),
    ),
)
