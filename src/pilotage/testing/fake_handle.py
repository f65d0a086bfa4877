"""A scheduler for plugins under test: the real cluster state behind it, and a record of everything they ask for.

    handle = FakeHandle()
    handle.put(node("a").build(), pod("p").node("a").build())
    plugin = MyPlugin(handle)
    ...
    assert [call.kind for call in handle.calls] == ["label_node"]

Nothing is sent anywhere: calls, bindings, evictions and activations are kept in lists.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotage.api.calls import ApiCall, ApiWriter, Ending, OnOutcome, Outcome
from pilotage.api.conditions import PodCondition
from pilotage.api.indexes import PodClass
from pilotage.api.preemption import Candidate, Evicted, Eviction, OnEvicted
from pilotage.api.results import Refusal
from pilotage.api.state import CycleState
from pilotage.api.table import NodeTable, Rows, Scores
from pilotage.api.views import IndexT, NodeView
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import Node, Pod
from pilotage.rng import seeded
from pilotage.testing.virtual_clock import VirtualClock


@dataclass(frozen=True, slots=True)
class NoVictims:
    """A search for victims that found none."""

    best: Candidate | None = None
    candidates: Sequence[Candidate] = ()
    errors: Sequence[Exception] = ()
    _refusals: Mapping[str, tuple[str, Refusal]] = field(default_factory=dict)

    def refusals(self) -> Mapping[str, tuple[str, Refusal]]:
        return self._refusals

    def message(self) -> str:
        return "No preemption victims found for incoming pod"


class FakeHandle:
    """Implements `pilotage.api.Handle` over a cluster of its own."""

    def __init__(
        self, cluster: Cluster | None = None, clock: Clock | None = None, rng: random.Random | None = None
    ) -> None:
        self.cluster = cluster or Cluster()
        self.clock: Clock = clock or VirtualClock()
        self.rng = rng or seeded(0)
        self.waiting_pods = WaitingPods()
        self.calls: list[ApiCall] = []
        self.bindings: list[tuple[str, str]] = []
        """(pod key, node name)"""
        self.patched: list[tuple[str, tuple[PodCondition, ...], str | None]] = []
        """(pod key, conditions, nomination)"""
        self.evictions: list[Eviction] = []
        self.events: list[tuple[str, str, str]] = []
        """(pod key, reason, note)"""
        self.counters: Counter[str] = Counter()
        self.observed: list[tuple[str | float, ...]] = []
        """(name, value, labels...)"""
        self.activated: list[Pod] = []
        self.rechecked: list[Pod] = []

    def put(self, *objects: Any) -> None:
        """Nodes, pods (on a node or pending) and other objects as the API server would tell of them."""
        for obj in objects:
            self.cluster.put_object(type(obj).__name__, obj)
            if isinstance(obj, Node):
                self.cluster.put_node(obj)
            elif isinstance(obj, Pod) and obj.node_name:
                self.cluster.put_pod(obj)

    @property
    def nodes(self) -> NodeTable:
        return self.cluster.nodes

    def node(self, name: str) -> NodeView | None:
        return self.cluster.node_view(name)

    def objects(self, kind: str) -> Mapping[str, Any]:
        return self.cluster.objects(kind)

    def index(self, cls: type[IndexT]) -> IndexT:
        return self.cluster.index(cls)

    def count_pods(self, key: Hashable, wanted: Callable[[PodClass], bool]) -> Scores:
        return self.cluster.counts.per_row(key, wanted)

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        return self.cluster.nominations.on(node_name)

    def nominated_node(self, pod: Pod) -> str:
        return self.cluster.nominations.node_of(pod.uid)

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.cluster.nominations.remove(pod.uid)

    def search_victims(self, state: CycleState, pod: Pod, rows: Rows, wanted: int) -> NoVictims:
        return NoVictims()

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        self.evictions.append(eviction)
        on_evicted(Evicted())

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None:
        self.calls.append(call)
        if on_outcome is not None:
            on_outcome(Outcome(Ending.DONE))

    async def perform(self, call: ApiCall) -> None:
        self.calls.append(call)

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.bindings.append((pod.key, node_name))

    def patch_status(self, pod: Pod, *conditions: PodCondition, nomination: str | None = None) -> Pod:
        self.patched.append((pod.key, conditions, nomination))
        return pod

    @property
    def client(self) -> ApiWriter:
        raise RuntimeError(
            "there is no API server behind a fake handle; submit() or perform() a call and look at `calls`"
        )

    def record_event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.events.append((pod.key, reason, note))

    def count(self, name: str, *labels: str, amount: int = 1) -> None:
        self.counters[name] += amount

    def observe(self, name: str, value: float, *labels: str) -> None:
        self.observed.append((name, value, *labels))

    def activate(self, pods: Iterable[Pod]) -> None:
        self.activated.extend(pods)

    def recheck_gates(self, pods: Iterable[Pod]) -> None:
        self.rechecked.extend(pods)
