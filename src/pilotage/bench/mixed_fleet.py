"""A cluster as one finds them: many Deployments, most of them plain, some with wishes, and nothing stands still.

Of a hundred Deployments 20 spread their pods over zones or nodes, 10 have pod affinity, 5 a volume and 2 a device for
each pod. Volumes are bound and claims are there beforehand, so that no controller is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.bench.fleet_workloads import deployment_pod, node_changes, pod_changes, shaped_node
from pilotage.bench.volume_workloads import csi_objects, with_claim
from pilotage.bench.workloads import NAMESPACE, BenchWorkload, ClusterChange, Object

_DEPLOYMENTS = 300
_ZONE = "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_DRIVER = "devices.example.com"
_DEVICE_CLASS = "fleet-device"
_RESOURCE_API = "resource.k8s.io/v1"
_DEVICES_PER_NODE = 2
_CHANGES_EVERY = 5
_KINDS = ("spread",) * 20 + ("affinity",) * 10 + ("volume",) * 5 + ("device",) * 2 + ("plain",) * 63
"""Of a hundred Deployments."""


def kind_of_pod(number: int) -> str:
    """What the pod with this number wishes; each run of a hundred Deployments has all kinds, evenly mixed."""
    return _KINDS[number % _DEPLOYMENTS * 37 % len(_KINDS)]


def _pod(kind: str, number: int) -> Object:
    deployment = number % _DEPLOYMENTS
    pod = deployment_pod(f"{kind}-{number:06}", deployment)
    selector = {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}
    wish = kind_of_pod(number)
    if wish == "spread":
        over, unless = (_ZONE, "DoNotSchedule") if deployment % 2 else (_HOSTNAME, "ScheduleAnyway")
        pod["spec"]["topologySpreadConstraints"] = [
            {"maxSkew": 5, "topologyKey": over, "whenUnsatisfiable": unless, "labelSelector": selector}
        ]
    elif wish == "affinity":
        pod["spec"]["affinity"] = _affinity(deployment, selector)
    return pod


def _affinity(deployment: int, selector: Object) -> Object:
    """Half of them want no two on a node; the others like the zone of their kind."""
    if deployment % 2:
        term = {"labelSelector": selector, "topologyKey": _HOSTNAME}
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    liked = {"weight": 50, "podAffinityTerm": {"labelSelector": selector, "topologyKey": _ZONE}}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [liked]}}


def _measured_pod(number: int) -> Object:
    pod = _pod("pod", number)
    wish = kind_of_pod(number)
    if wish == "volume":
        return with_claim(pod, number)
    if wish == "device":
        pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": f"device-{number:06}"}]
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "device"}]
    return pod


def _objects(workload: BenchWorkload) -> Iterator[Object]:
    yield from csi_objects(workload, [number for number in range(workload.pods) if kind_of_pod(number) == "volume"])
    here = {"selectors": [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]}
    yield _of_devices("DeviceClass", {"name": _DEVICE_CLASS}, here)
    for number in range(workload.nodes):
        name = shaped_node(number)["metadata"]["name"]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"device-{place}"} for place in range(_DEVICES_PER_NODE)]
        spec = {"driver": _DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        yield _of_devices("ResourceSlice", {"name": name}, spec)
    for number in range(workload.pods):
        if kind_of_pod(number) == "device":
            request = {"name": "one", "exactly": {"deviceClassName": _DEVICE_CLASS}}
            metadata = {"name": f"device-{number:06}", "namespace": NAMESPACE}
            yield _of_devices("ResourceClaim", metadata, {"devices": {"requests": [request]}})


def _of_devices(kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": _RESOURCE_API, "kind": kind, "metadata": metadata, "spec": spec}


def _changes(workload: BenchWorkload, number: int) -> Iterator[ClusterChange]:
    yield from pod_changes(workload, number)
    if number % _CHANGES_EVERY == 0:
        yield from node_changes(workload, number)


MIXED_FLEET = BenchWorkload(
    name="MixedFleet",
    about="pods of 300 Deployments, some with wishes of their own, while nodes and pods come and go",
    nodes=5000,
    init_pods=1500,
    pods=3000,
    make_node=shaped_node,
    make_init_pod=lambda number: _pod("init", number),
    make_pod=_measured_pod,
    make_objects=_objects,
    make_changes=_changes,
)
