"""What cycles and events cost as the cluster grows, in CPU time: one, ten and a hundred times as large.

Everything goes through the intake and the cycles of the real scheduler with all default plugins; only the API server is
missing. The cluster has nodes of 30 shapes; with its nodes grow the running pods, claims, namespaces and disruption
budgets. A row is a sort of pod, named after the workload that it is taken from, or a sort of event.

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
from pilotage.bench.workloads import NAMESPACE, OTHER_NAMESPACE, BenchWorkload, Object
from pilotage.calls.no_api import NoApi
from pilotage.clock import SystemClock, thread_cpu_seconds
from pilotage.cycle.binding import BindingDecision
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.model import WatchEvent
from pilotage.model.kinds import kind_of
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
    found = {}
    world = _World(nodes)
    for name in _CYCLES:
        workload = WORKLOADS[name].sized(nodes, 0, _PODS_PER_BATCH * (_BATCHES + 1))
        world.put_objects(workload.make_objects(workload) if name not in (_EQUAL, _DISTINCT) else ())
        # The first pods find nothing that was kept for them.
        batches = [world.schedule(workload, batch) for batch in range(_BATCHES + 1)]
        found[name] = min(batches[1:])
    return found


class _World:
    """A scheduler and what its cluster has."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.scheduler: SchedulingLoop = build_scheduler(NoApi(), SystemClock(), seeded(1), SchedulerOptions())
        self.put("Namespace", [_namespace(name) for name in (NAMESPACE, OTHER_NAMESPACE)])
        self.put("Node", [_decoded("Node", shaped_node(number)) for number in range(nodes)])
        self.put("Pod", [_running(number, nodes) for number in range(nodes * _PODS_PER_NODE)])
        others = range(max(1, nodes // _NODES_PER_OTHER))
        self.put("Namespace", [_namespace(f"namespace-{number}") for number in others])
        self.put("PersistentVolumeClaim", [_claim(number) for number in others])
        self.put("PodDisruptionBudget", [_budget(number) for number in others])

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

    def schedule(self, workload: BenchWorkload, batch: int) -> float:
        """CPU seconds per pod of a batch."""
        first, scheduler = batch * _PODS_PER_BATCH, self.scheduler
        pods = [
            _decoded("Pod", _identified(workload.make_pod(number))) for number in range(first, first + _PODS_PER_BATCH)
        ]
        self.put("Pod", pods)
        gc.collect()
        gc.freeze()
        bound = []
        began = thread_cpu_seconds()
        while (ticket := scheduler.queue.pop()) is not None:
            decision = scheduler.cycle.decide(ticket)
            if not isinstance(decision, BindingDecision):
                raise DoesNotFit(f"{workload.name}: a pod did not fit on {self.nodes} nodes; there must be more")
            scheduler.queue.done(ticket, decision.pod.node_name)
            bound.append(decision.pod)
        seconds = thread_cpu_seconds() - began
        gc.unfreeze()
        # Pods are not to be in the way of the next.
        self.put("Pod", bound, "MODIFIED")
        self.put("Pod", bound, "DELETED")
        return seconds / _PODS_PER_BATCH * 1e6


# --- events -----------------------------------------------------------------------------------------------------------


def _event_costs(nodes: int) -> dict[str, float]:
    """CPU per event while a pod waits that none of them helps: the best of some runs."""
    world = _World(nodes)
    world.put("Pod", [_decoded("Pod", _identified(_waiting()))])
    ticket = world.scheduler.queue.pop()
    assert ticket is not None
    world.scheduler.queue.give_back(ticket, ticket.pod, frozenset(["NodeAffinity"]), frozenset())
    each = range(_EVENTS)
    new_nodes = [_decoded("Node", shaped_node(nodes + number)) for number in each]
    new_pods = [_running(nodes * _PODS_PER_NODE + number, nodes) for number in each]
    events: list[tuple[str, str, str, Sequence[Any]]] = [
        ("event: a node's label", "Node", "MODIFIED", [_relabelled(number % nodes, "a") for number in each]),
        ("event: a node's heartbeat", "Node", "MODIFIED", [_heartbeat(number % nodes) for number in each]),
        ("event: a node comes", "Node", "ADDED", new_nodes),
        ("event: a node goes", "Node", "DELETED", new_nodes),
        ("event: a pod is on a node", "Pod", "ADDED", new_pods),
        ("event: a pod's status", "Pod", "MODIFIED", [_with_status(pod) for pod in new_pods]),
        ("event: a pod goes", "Pod", "DELETED", new_pods),
        ("event: a claim", "PersistentVolumeClaim", "MODIFIED", [_claim(0, str(number)) for number in each]),
        ("event: a namespace", "Namespace", "MODIFIED", [_namespace("namespace-0", str(number)) for number in each]),
        ("event: a disruption budget", "PodDisruptionBudget", "MODIFIED", [_budget(0, str(number)) for number in each]),
    ]
    found = dict.fromkeys([name for name, *_ in events], float("inf"))
    for _ in range(_BATCHES):
        for name, kind, change, objects in events:
            gc.collect()
            began = thread_cpu_seconds()
            world.put(kind, objects, change)
            found[name] = min(found[name], (thread_cpu_seconds() - began) / len(objects) * 1e6)
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


def _waiting() -> Object:
    pod = deployment_pod("waiting", 1)
    pod["spec"]["nodeSelector"] = {"pool": "none"}
    return pod


def _relabelled(number: int, value: str) -> Any:
    node = shaped_node(number)
    node["metadata"]["labels"]["round"] = value
    return _decoded("Node", node)


def _heartbeat(number: int) -> Any:
    node = shaped_node(number)
    node["metadata"]["labels"]["round"] = "a"
    node["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    return _decoded("Node", node)


def _namespace(name: str, note: str = "") -> Any:
    return _decoded("Namespace", {"kind": "Namespace", "metadata": {"name": name, "labels": {"note": note}}})


def _claim(number: int, note: str = "") -> Any:
    metadata = {"name": f"claim-{number}", "namespace": NAMESPACE, "annotations": {"note": note}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return _decoded("PersistentVolumeClaim", {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def _budget(number: int, note: str = "") -> Any:
    metadata = {"name": f"budget-{number}", "namespace": NAMESPACE, "annotations": {"note": note}}
    spec = {"selector": {"matchLabels": {"app": f"app-{number % 300:03}"}}}
    return _decoded("PodDisruptionBudget", {"kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})
