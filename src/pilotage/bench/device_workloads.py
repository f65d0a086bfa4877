"""Workloads with devices: every pod gets a claim from a template, and a device by the claim."""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.bench.workloads import NAMESPACE, BenchWorkload, Object, bench_node, bench_pod
from pilotage.rng import seeded
from pilotage.sandbox.life.controllers.resource_claims import ResourceClaimController

_DRIVER = "test-driver.cdi.k8s.io"
_CLASS = "test-class"
_TEMPLATE = "test-claim-template"
_API = "resource.k8s.io/v1"
_DEVICES_PER_NODE = 10
_SEED = 1


def _devices_per_node(workload: BenchWorkload) -> int:
    """Half of the devices have an owner from the start; where more pods come than the others serve, there are more."""
    taken = _DEVICES_PER_NODE // 2
    return max(_DEVICES_PER_NODE, taken + -(-workload.pods // workload.nodes))


def _objects(workload: BenchWorkload) -> Iterator[Object]:
    devices = _devices_per_node(workload)
    expression = f'device.driver == "{_DRIVER}"'
    yield _object("DeviceClass", _CLASS, {"selectors": [{"cel": {"expression": expression}}]})
    for number in range(workload.nodes):
        yield _slice(f"node-{number:05}", devices)
    yield from _allocated_claims(workload, devices)
    template = _object("ResourceClaimTemplate", _TEMPLATE, {"spec": {"devices": {"requests": [_request()]}}})
    template["metadata"]["namespace"] = NAMESPACE
    yield template


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _slice(node: str, devices: int) -> Object:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    named = [{"name": f"device-{place:03}"} for place in range(devices)]
    return _object("ResourceSlice", node, {"driver": _DRIVER, "nodeName": node, "pool": pool, "devices": named})


def _request() -> Object:
    return {"name": "req-0", "exactly": {"deviceClassName": _CLASS}}


def _allocated_claims(workload: BenchWorkload, devices: int) -> Iterator[Object]:
    """As many claims as half of ten devices per node, at devices drawn by lot."""
    everything = [(node, device) for node in range(workload.nodes) for device in range(devices)]
    drawn = seeded(_SEED).sample(everything, workload.nodes * _DEVICES_PER_NODE // 2)
    for number, (node, device) in enumerate(drawn):
        claim = _object("ResourceClaim", f"init-{number:06}", {"devices": {"requests": [_request()]}})
        claim["metadata"]["namespace"] = NAMESPACE
        claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        claim["status"] = {"allocation": _allocation(f"node-{node:05}", f"device-{device:03}")}
        yield claim


def _allocation(node: str, device: str) -> Object:
    result = {"request": "req-0", "driver": _DRIVER, "pool": node, "device": device}
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }


def _claiming_pod(number: int) -> Object:
    pod = bench_pod(f"pod-{number:06}")
    pod["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimTemplateName": _TEMPLATE}]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "resource"}]
    return pod


DEVICE_WORKLOADS = (
    BenchWorkload(
        name="SchedulingWithResourceClaimTemplate",
        about="pods with a device each, through claims that a controller makes from a template",
        nodes=500,
        # Without claims: when they are bound, the scheduler is up and knows all devices.
        init_pods=100,
        pods=2500,
        make_node=bench_node,
        make_init_pod=lambda number: bench_pod(f"init-{number:06}"),
        make_pod=_claiming_pod,
        make_objects=_objects,
        controllers=(ResourceClaimController,),
        # What an event costs for pods that it cannot help shows only while many wait.
        comes_at_once=True,
        contrast_gate="SchedulerPreQueueingHints",
    ),
)
