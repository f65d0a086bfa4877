"""What cycles and events cost as the cluster grows, in CPU time: one, ten and a hundred times as large.

Everything goes through the intake and the cycles of the real scheduler with all default plugins; only the API server is
missing. The cluster has nodes of 30 shapes; with its nodes grow the running pods, the waiting ones, and the objects of
all other kinds: claims, volumes, namespaces, disruption budgets, selectors of Services and ReplicaSets. A row is a sort
of pod, named after the workload that it is taken from or the plugins that have something to say about it, or a sort of
event.

Two ratios hold on any machine and are to be kept: what pods that are all different cost against equal ones, and what a
pod costs with ten times as many nodes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pilotage.assembly import SchedulerOptions, build_scheduler
from pilotage.bench.catalog import WORKLOADS
from pilotage.bench.event_handling import MeasuredFigure
from pilotage.bench.fleet_workloads import deployment_pod, shaped_node
from pilotage.bench.workloads import NAMESPACE, OTHER_NAMESPACE, BenchWorkload, Object, bench_pod
from pilotage.calls.no_api import NoApi
from pilotage.clock import SystemClock, thread_cpu_seconds
from pilotage.cycle.binding import BindingDecision
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.model import WatchEvent
from pilotage.model.kinds import kind_of
from pilotage.model.meta import TimedCondition
from pilotage.rng import seeded

NAME: Final = "Scaling"
LARGEST: Final = 50_000
_STEPS: Final = (100, 10, 1)
_PODS_PER_NODE: Final = 2
_NODES_PER_OTHER: Final = 10
"""One claim, namespace and disruption budget for so many nodes."""
_BATCHES: Final = 3
_PODS_PER_BATCH: Final = 40
_EVENTS: Final = 100
_EQUAL: Final = "SchedulingBasic"
_DISTINCT: Final = "SchedulingDistinct"
_CYCLES: Final = (
    _EQUAL,
    _DISTINCT,
    "SchedulingNodeAffinity",
    "SchedulingPodAntiAffinity",
    "SchedulingPodAffinity",
    "SchedulingPreferredPodAffinity",
    "TopologySpreading",
    "PreferredTopologySpreading",
    "SchedulingCSIPVs",
)
_PORT: Final = "NodePorts"
_LIKED: Final = "TaintToleration, ImageLocality"
_DEVICES: Final = "DynamicResources"
_FITS_NOWHERE: Final = "Unschedulable"
_PREEMPTOR: Final = "DefaultPreemption"
_IMAGE: Final = "registry.example/app:1"
_MOST_AGAINST_EQUAL: Final = 12.0
_MOST_BY_NODES: Final = {_EQUAL: 4.0, _DISTINCT: 14.0}
"""With ten times as many nodes. Equal pods look for the largest of all keys and at little else; different ones at all
nodes, and a large cluster leaves the caches of the processor."""


class DoesNotFit(Exception):
    """The cluster is too small for the pods; the message says so."""


class ScalingRow(msgspec.Struct, frozen=True):
    """Microseconds of CPU for each size of the cluster, the smallest first."""

    name: str
    micros: tuple[float, ...]

    @property
    def steepness(self) -> float:
        """How much dearer the largest cluster is than the one a tenth as large."""
        return self.micros[-1] / self.micros[-2]


def sizes(largest: int) -> tuple[int, ...]:
    """Numbers of nodes."""
    return tuple(max(1, largest // step) for step in _STEPS)


def measure(largest: int, report: Callable[[str], None]) -> list[ScalingRow]:
    """All rows; `report` hears what is being done."""
    by_size: list[Mapping[str, float]] = []
    for nodes in sizes(largest):
        report(f"{nodes:,} nodes")
        by_size.append({**_cycle_costs(nodes), **_event_costs(nodes)})
    return [ScalingRow(name, tuple(costs[name] for costs in by_size)) for name in by_size[0]]


def figures_of(rows: Sequence[ScalingRow]) -> Iterator[MeasuredFigure]:
    """The ratios that are to be kept."""
    known = {row.name: row for row in rows}
    against = known[_DISTINCT].micros[-2] / known[_EQUAL].micros[-2]
    yield _ratio("pods that are all different against equal ones", against, _MOST_AGAINST_EQUAL)
    for name, most in _MOST_BY_NODES.items():
        yield _ratio(f"{name}: ten times as many nodes", known[name].steepness, most)


def _ratio(name: str, value: float, most: float) -> MeasuredFigure:
    return MeasuredFigure(name, value, "times as dear", f"<= {most:g}", value <= most)


# --- cycles -----------------------------------------------------------------------------------------------------------


def _cycle_costs(nodes: int) -> dict[str, float]:
    """CPU per pod from the queue to the assumed place, by workload: the best of some batches."""
    world = _World(nodes)
    found = {name: world.cost_of(WORKLOADS[name], has_objects=name not in (_EQUAL, _DISTINCT)) for name in _CYCLES}
    found[_PORT] = world.cost_of(_sort(_PORT, _with_port))
    found[_DEVICES] = world.cost_of(_sort(_DEVICES, _with_device, _device_objects))
    found[_FITS_NOWHERE] = world.cost_of(_sort(_FITS_NOWHERE, lambda number: _asking(number, "200")))
    world.put("Node", [_decoded("Node", _liked_node(number)) for number in range(nodes)], "MODIFIED")
    found[_LIKED] = world.cost_of(_sort(_LIKED, _with_image))
    # What is to go is marked for it, so that nothing else can be measured there.
    found[_PREEMPTOR] = world.cost_of(_sort(_PREEMPTOR, _preemptor))
    return found


_Objects = Callable[[BenchWorkload], Iterable[Object]]


def _sort(name: str, make_pod: Callable[[int], Object], make_objects: _Objects = lambda _: ()) -> BenchWorkload:
    """Pods that no other benchmark has."""
    return BenchWorkload(name, name, 1, 0, 1, shaped_node, make_pod, make_pod, make_objects=make_objects)


class _World:
    """A scheduler and what its cluster has."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.scheduler: SchedulingLoop = build_scheduler(NoApi(), SystemClock(), seeded(1), SchedulerOptions())
        self.put("Namespace", [_namespace(name) for name in (NAMESPACE, OTHER_NAMESPACE)])
        self.put("Node", [_decoded("Node", shaped_node(number)) for number in range(nodes)])
        self.put("Pod", [_running(number, nodes) for number in range(nodes * _PODS_PER_NODE)])
        others = range(max(1, nodes // _NODES_PER_OTHER))
        for kind, make in _OTHERS.items():
            self.put(kind, [make(number, "") for number in others])

    def put(self, kind: str, objects: Sequence[Any], change: str = "ADDED") -> None:
        self.scheduler.intake.apply(kind, [WatchEvent(change, obj) for obj in objects])
        while not self.scheduler.inbox.is_empty:
            self.scheduler.drain_inbox()

    def put_objects(self, manifests: Iterable[Object]) -> None:
        by_kind: dict[str, list[Any]] = {}
        for manifest in manifests:
            by_kind.setdefault(manifest["kind"], []).append(_decoded(manifest["kind"], manifest))
        for kind, objects in by_kind.items():
            self.put(kind, objects)

    def cost_of(self, workload: BenchWorkload, *, has_objects: bool = True) -> float:
        """CPU microseconds per pod."""
        workload = workload.sized(self.nodes, 0, _PODS_PER_BATCH * (_BATCHES + 1))
        if has_objects:
            self.put_objects(workload.make_objects(workload))
        # The first pods find nothing that was kept for them.
        batches = [self._schedule(workload, batch) for batch in range(_BATCHES + 1)]
        return min(batches[1:])

    def _schedule(self, workload: BenchWorkload, batch: int) -> float:
        first, scheduler = batch * _PODS_PER_BATCH, self.scheduler
        pods = [
            _decoded("Pod", _identified(workload.make_pod(number))) for number in range(first, first + _PODS_PER_BATCH)
        ]
        self.put("Pod", pods)
        gc.collect()
        gc.freeze()
        bound, seconds = [], 0.0
        for _ in pods:
            began = thread_cpu_seconds()
            ticket = scheduler.queue.pop()
            decision = None if ticket is None else scheduler.cycle.decide(ticket)
            scheduler.cycle.end()
            seconds += thread_cpu_seconds() - began
            if ticket is not None and isinstance(decision, BindingDecision):
                scheduler.queue.done(ticket, decision.pod.node_name)
                bound.append(decision.pod)
        gc.unfreeze()
        if len(bound) < len(pods) and workload.name not in (_FITS_NOWHERE, _PREEMPTOR):
            raise DoesNotFit(f"{workload.name}: a pod did not fit on {self.nodes} nodes; there must be more")
        # Pods are not to be in the way of the next.
        self.put("Pod", bound, "MODIFIED")
        self.put("Pod", bound or pods, "DELETED")
        return seconds / _PODS_PER_BATCH * 1e6


# --- events -----------------------------------------------------------------------------------------------------------


def _event_costs(nodes: int) -> dict[str, float]:
    """CPU per event while pods wait that none of them helps: the best of some runs."""
    world = _World(nodes)
    world.put(
        "Pod", [_decoded("Pod", _identified(_waiting(number))) for number in range(max(1, nodes // _NODES_PER_OTHER))]
    )
    while (ticket := world.scheduler.queue.pop()) is not None:
        world.scheduler.queue.give_back(ticket, ticket.pod, frozenset(["NodeAffinity"]), frozenset())
    each = range(_EVENTS)
    new_nodes = [_decoded("Node", shaped_node(nodes + number)) for number in each]
    waiting = [_decoded("Pod", _identified(_waiting(nodes + number))) for number in each]
    new_pods = [_running(nodes * _PODS_PER_NODE + number, nodes) for number in each]
    events: list[tuple[str, str, str, Sequence[Any]]] = [
        ("event: a node comes", "Node", "ADDED", new_nodes),
        ("event: a node goes", "Node", "DELETED", new_nodes),
        ("event: a pod is on a node", "Pod", "ADDED", new_pods),
        ("event: a pod's status", "Pod", "MODIFIED", [_with_status(pod) for pod in new_pods]),
        ("event: a pod goes", "Pod", "DELETED", new_pods),
        ("event: a pod waits", "Pod", "ADDED", waiting),
        ("event: a pod waits no more", "Pod", "DELETED", waiting),
        *((f"event: {kind}", kind, "MODIFIED", [make(0, str(at)) for at in each]) for kind, make in _OTHERS.items()),
    ]
    found: dict[str, float] = {}
    for batch in range(_BATCHES):
        # Another value in each batch, so that there is something new about the label.
        labels = [_relabelled(number % nodes, str(batch)) for number in each]
        beats = [_with_heartbeat(node) for node in labels]
        of_nodes = [
            ("event: a node's label", "Node", "MODIFIED", labels),
            ("event: a node's heartbeat", "Node", "MODIFIED", beats),
        ]
        for name, kind, change, objects in (*of_nodes, *events):
            gc.collect()
            began = thread_cpu_seconds()
            world.put(kind, objects, change)
            micros = (thread_cpu_seconds() - began) / len(objects) * 1e6
            found[name] = min(found.get(name, micros), micros)
    return found


# --- objects ----------------------------------------------------------------------------------------------------------


def _decoded(kind: str, manifest: Object) -> Any:
    known = kind_of(kind)
    assert known is not None
    return known.decode(msgspec.json.encode(manifest))


def _identified(pod: Object) -> Object:
    pod["metadata"]["uid"] = f"uid-{pod['metadata']['name']}"
    pod["spec"]["schedulerName"] = "default-scheduler"
    return pod


def _running(number: int, nodes: int) -> Any:
    pod = _identified(deployment_pod(f"running-{number:07}", number % 300))
    pod["spec"]["nodeName"] = shaped_node(number % nodes)["metadata"]["name"]
    return _decoded("Pod", pod)


def _with_status(pod: Any) -> Any:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Running"))


def _waiting(number: int) -> Object:
    """Of one of 300 Deployments that want what no node is."""
    pod = deployment_pod(f"waiting-{number:07}", number % 300)
    pod["spec"]["nodeSelector"] = {"pool": "none"}
    return pod


def _with_port(number: int) -> Object:
    pod = bench_pod(f"port-{number:06}")
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080 + number % 4}]
    return pod


def _with_image(number: int) -> Object:
    pod = bench_pod(f"image-{number:06}")
    pod["spec"]["containers"][0]["image"] = _IMAGE
    return pod


def _liked_node(number: int) -> Object:
    """Every third has the image, and every fourth is not liked."""
    node = shaped_node(number)
    if number % 3 == 0:
        node["status"]["images"] = [{"names": [_IMAGE], "sizeBytes": 500 * 1024 * 1024}]
    if number % 4 == 0:
        node["spec"] = {"taints": [{"key": "busy", "effect": "PreferNoSchedule"}]}
    return node


def _asking(number: int, cpu: str) -> Object:
    return bench_pod(f"asking-{number:06}", {"cpu": cpu, "memory": "1Mi"})


def _preemptor(number: int) -> Object:
    """It fits on the largest nodes, without the pods that are there."""
    pod = _asking(number, "64")
    pod["spec"]["priority"] = 1000
    return pod


_DEVICE: Final = "device.example"


def _with_device(number: int) -> Object:
    pod = bench_pod(f"device-{number:06}")
    pod["spec"]["resourceClaims"] = [{"name": "one", "resourceClaimName": f"own-{number}"}]
    return pod


def _device_objects(workload: BenchWorkload) -> Iterator[Object]:
    """A class that selects any device, devices on each node that serve all pods together, and a claim for each pod."""
    devices = [{"name": f"device-{at}"} for at in range(-(-workload.pods // workload.nodes))]
    yield {"kind": "DeviceClass", "metadata": {"name": _DEVICE}, "spec": {}}
    for number in range(workload.nodes):
        name = shaped_node(number)["metadata"]["name"]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": _DEVICE, "nodeName": name, "pool": pool, "devices": devices}
        yield {"kind": "ResourceSlice", "metadata": {"name": name, "uid": name}, "spec": spec}
    for number in range(workload.pods):
        metadata = {"name": f"own-{number}", "namespace": NAMESPACE, "uid": f"own-{number}"}
        request = {"name": "one", "exactly": {"deviceClassName": _DEVICE, "count": 1, "allocationMode": "ExactCount"}}
        yield {"kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": {"requests": [request]}}}


def _relabelled(number: int, value: str) -> Any:
    node = shaped_node(number)
    node["metadata"]["labels"]["round"] = value
    return _decoded("Node", node)


def _with_heartbeat(node: Any) -> Any:
    ready = TimedCondition(type="Ready", status="True")
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=(ready,)))


def _namespace(name: str, note: str = "") -> Any:
    return _decoded("Namespace", {"kind": "Namespace", "metadata": {"name": name, "labels": {"note": note}}})


def _other(kind: str, number: int, note: str, *, namespaced: bool = True, **fields: object) -> Any:
    name = f"{kind.lower()}-{number}"
    metadata: Object = {"name": name, "uid": f"uid-{name}", "annotations": {"note": note}}
    if namespaced:
        metadata["namespace"] = NAMESPACE
    return _decoded(kind, {"kind": kind, "metadata": {**metadata, "resourceVersion": f"1{note}"}, **fields})


def _of_app(number: int) -> Object:
    return {"app": f"app-{number % 300:03}"}


def _selecting(kind: str) -> Callable[[int, str], Any]:
    return lambda number, note: _other(kind, number, note, spec={"selector": {"matchLabels": _of_app(number)}})


def _selecting_by_labels(kind: str) -> Callable[[int, str], Any]:
    return lambda number, note: _other(kind, number, note, spec={"selector": _of_app(number)})


def _global(kind: str, **fields: object) -> Callable[[int, str], Any]:
    return lambda number, note: _other(kind, number, note, namespaced=False, **fields)


_STORAGE: Final = {"storage": "1Gi"}
_MODES: Final = ["ReadWriteOnce"]
_OTHERS: Final[Mapping[str, Callable[[int, str], Any]]] = {
    "Namespace": lambda number, note: _namespace(f"namespace-{number}", note),
    "PodDisruptionBudget": _selecting("PodDisruptionBudget"),
    "Service": _selecting_by_labels("Service"),
    "ReplicaSet": _selecting("ReplicaSet"),
    "StatefulSet": _selecting("StatefulSet"),
    "ReplicationController": _selecting_by_labels("ReplicationController"),
    "PersistentVolumeClaim": lambda number, note: _other(
        "PersistentVolumeClaim", number, note, spec={"accessModes": _MODES, "resources": {"requests": _STORAGE}}
    ),
    "PersistentVolume": _global("PersistentVolume", spec={"accessModes": _MODES, "capacity": _STORAGE}),
    "StorageClass": _global("StorageClass", provisioner="csi.example"),
    "CSIDriver": _global("CSIDriver", spec={}),
    "CSIStorageCapacity": lambda number, note: _other(
        "CSIStorageCapacity", number, note, storageClassName="none", capacity="1Gi"
    ),
    "VolumeAttachment": _global("VolumeAttachment", spec={"attacher": "csi.example", "nodeName": "none", "source": {}}),
    "ResourceClaim": lambda number, note: _other("ResourceClaim", number, note, spec={"devices": {}}),
    "DeviceClass": _global("DeviceClass", spec={}),
    "ResourceSlice": _global(
        "ResourceSlice",
        spec={"driver": _DEVICE, "nodeName": "none", "pool": {"name": "none"}, "devices": [{"name": "one"}]},
    ),
    "CSINode": _global("CSINode", spec={"drivers": []}),
    "PodGroup": lambda number, note: _other("PodGroup", number, note, spec={"schedulingPolicy": {"basic": {}}}),
}
"""Every other kind that scheduling looks at, by number and a note in which versions differ."""
