"""The demo's cluster at one moment: how full the nodes are, which pods are placed, which wait and why.

Everything is read from the API server's store, as any client could, so the view shows what kubectl would show. Objects
are decoded once per revision: a thousand nodes must not cost a thousand decodings per frame.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pilotage.model import KINDS, Node, Pod
from pilotage.model.pod_resources import assigned_requests
from pilotage.model.quantity import quantity_milli, quantity_value
from pilotage.sandbox.storage.records import Change, Key, Record
from pilotage.sandbox.storage.store import Store

_REMEMBERED: Final = 100


@dataclass(frozen=True, slots=True)
class NodeUse:
    """How much of a resource is requested; CPU in thousandths of a core, memory in bytes."""

    requested: int
    allocatable: int

    @property
    def share(self) -> float:
        return self.requested / self.allocatable if self.allocatable else 0.0


@dataclass(frozen=True, slots=True)
class NodeLine:
    name: str
    cpu: NodeUse
    memory: NodeUse
    pods: NodeUse
    notes: tuple[str, ...]
    """Taints, and whether it is cordoned."""


@dataclass(frozen=True, slots=True)
class PendingLine:
    key: str
    priority: int
    reason: str
    """What the scheduler says; "" if it has not looked at the pod yet."""


@dataclass(slots=True)
class WorkloadLine:
    """The pods that share the label `app`."""

    name: str
    priority: int = 0
    pods: int = 0
    placed: int = 0
    running: int = 0
    finished: int = 0
    nodes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Picture:
    nodes: tuple[NodeLine, ...]
    workloads: tuple[WorkloadLine, ...]
    pending: tuple[PendingLine, ...]

    @property
    def pods(self) -> int:
        return sum(line.pods for line in self.workloads)

    @property
    def placed(self) -> int:
        return sum(line.placed for line in self.workloads)

    @property
    def running(self) -> int:
        return sum(line.running for line in self.workloads)

    @property
    def finished(self) -> int:
        return sum(line.finished for line in self.workloads)


@dataclass(frozen=True, slots=True)
class DrawnPod:
    pod: str
    node: str
    priority: int


class Camera:
    """Takes pictures of a store, and remembers the last placements in their order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoded: dict[Key, tuple[int, Any]] = {}
        self.placements: deque[DrawnPod] = deque(maxlen=_REMEMBERED)
        self._unsubscribe: Callable[[], None] = store.subscribe("pods", self._notice)

    def close(self) -> None:
        self._unsubscribe()

    def picture(self) -> Picture:
        return take_picture(self._all("nodes"), self._all("pods"))

    def _all(self, resource: str) -> list[Any]:
        return [self._decode(resource, record) for record in self._store.list(resource)]

    def _decode(self, resource: str, record: Record) -> Any:
        known = self._decoded.get(record.key)
        if known is None or known[0] != record.revision:
            known = self._decoded[record.key] = (record.revision, KINDS[resource].decode(record.body))
        return known[1]

    def _notice(self, change: Change) -> None:
        if change.type == "DELETED":
            self._decoded.pop(change.record.key, None)
            return
        before = self._decoded.get(change.record.key)
        pod: Pod = self._decode("pods", change.record)
        if pod.node_name and (before is None or not before[1].node_name):
            self.placements.append(DrawnPod(pod.name, pod.node_name, pod.priority))


def take_picture(nodes: Iterable[Node], pods: Iterable[Pod]) -> Picture:
    """The picture of these objects."""
    requested: dict[str, Counter[str]] = {}
    workloads: dict[str, WorkloadLine] = {}
    pending: list[PendingLine] = []
    for pod in pods:
        _count(workloads, pod)
        if not pod.node_name:
            if not pod.is_finished:
                pending.append(_pending(pod))
        elif not pod.is_finished:
            on_node = requested.setdefault(pod.node_name, Counter())
            on_node.update(assigned_requests(pod))
            on_node["pods"] += 1
    pending.sort(key=lambda line: (-line.priority, line.key))
    lines = tuple(_node(node, requested.get(node.name, {})) for node in nodes)
    return Picture(lines, tuple(workloads[name] for name in sorted(workloads)), tuple(pending))


def _count(workloads: dict[str, WorkloadLine], pod: Pod) -> None:
    name = pod.labels.get("app") or pod.name
    line = workloads.setdefault(name, WorkloadLine(name, pod.priority))
    line.pods += 1
    if not pod.node_name:
        return
    line.placed += 1
    line.nodes[pod.node_name] += 1
    line.running += pod.status.phase == "Running"
    line.finished += pod.is_finished


def _pending(pod: Pod) -> PendingLine:
    condition = pod.status.condition("PodScheduled")
    reason = condition.message if condition is not None and condition.status == "False" else ""
    return PendingLine(pod.key, pod.priority, reason)


def _node(node: Node, requested: Mapping[str, int]) -> NodeLine:
    allocatable = node.status.allocatable
    return NodeLine(
        name=node.name,
        cpu=NodeUse(requested.get("cpu", 0), quantity_milli(allocatable.get("cpu", 0))),
        memory=NodeUse(requested.get("memory", 0), quantity_value(allocatable.get("memory", 0))),
        pods=NodeUse(requested.get("pods", 0), quantity_value(allocatable.get("pods", 0))),
        notes=tuple(f"{taint.key}:{taint.effect}" for taint in node.spec.taints)
        + (("cordoned",) if node.spec.unschedulable else ()),
    )
