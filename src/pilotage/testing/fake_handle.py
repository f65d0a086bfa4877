"""A scheduler for plugins under test: the real cluster state behind it, and a record of everything they ask for.

    handle = FakeHandle()
    handle.put(node("a").build(), pod("p").node("a").build())
    plugin = MyPlugin(handle)
    ...
    assert [call.kind for call in handle.calls] == ["label_node"]

Nothing is sent anywhere: calls, bindings, evictions and activations are kept in lists. Background tasks are kept too,
and run only if the test awaits them. `what_if` and `search_victims` ask the plugins that `serve_with` was given.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.calls import ApiCall, ApiWriter, Ending, OnOutcome, Outcome
from pilotage.api.conditions import PodCondition
from pilotage.api.events import ClusterEvent
from pilotage.api.group_members import PodGroups
from pilotage.api.indexes import PodClass
from pilotage.api.kinds import Kind, UnknownKind, WatchedKinds
from pilotage.api.plugin import Plugin
from pilotage.api.points import Bind, QueueSort
from pilotage.api.preemption import Candidate, Evicted, Eviction, OnEvicted, VictimPolicy, VictimSearch
from pilotage.api.results import Rejection
from pilotage.api.state import CycleState
from pilotage.api.table import NodeTable, Rows, Scores
from pilotage.api.views import IndexT, NodeView, QueuedPod
from pilotage.api.what_if import WhatIf
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.framework.evaluation import Evaluator
from pilotage.framework.preemption import Preemption
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.units import VictimUnits
from pilotage.framework.profile import Profile
from pilotage.framework.runner import Runner
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.framework.what_if import Nesting, ProfileWhatIf
from pilotage.model import Pod
from pilotage.observe.declaration import MetricTable
from pilotage.observe.plugin_metrics import PluginMetricTable
from pilotage.rng import seeded
from pilotage.testing.virtual_clock import VirtualClock


@dataclass(frozen=True, slots=True)
class NoVictims:
    """A search for victims that found none."""

    is_reviewed: bool = False
    best: Candidate | None = None
    candidates: Sequence[Candidate] = ()
    errors: Sequence[Exception] = ()
    _rejections: Mapping[str, tuple[str, Rejection]] = field(default_factory=dict)

    def rejections(self) -> Mapping[str, tuple[str, Rejection]]:
        return self._rejections

    def rejectors(self) -> frozenset[str]:
        return frozenset(plugin for plugin, _ in self._rejections.values() if plugin)

    def message(self) -> str:
        return "No preemption victims found for incoming pod"


class FakeHandle:
    """Implements `pilotage.api.Handle` over a cluster of its own."""

    def __init__(
        self,
        cluster: Cluster | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        *,
        watches: Iterable[Kind] = (),
    ) -> None:
        """`watches` is what the plugin under test names: FakeHandle(watches=MyPlugin.watches)."""
        self.cluster = cluster or Cluster(kinds=WatchedKinds({"the plugin under test": watches}))
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
        """(key of the object, reason, note)"""
        self.counters: Counter[str] = Counter()
        self.observed: list[tuple[str | float, ...]] = []
        """(name, value, labels...)"""
        self.metrics = PluginMetricTable(MetricTable())
        self.background: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = []
        """(name, coroutine function)"""
        self.profile_name = "default-scheduler"
        self._profile = Profile(self.profile_name, (_ByTime(), _NoBinder()), {})
        self._nesting = Nesting()
        self._raw: dict[str, Mapping[str, Any]] = {}
        self.activated: list[Pod] = []
        self.requeued_on: list[tuple[ClusterEvent, Any, Any]] = []
        """(event, old object, new object)"""
        self.backed_off: list[Pod] = []
        self.rechecked: list[Pod] = []
        self.is_view_stale = False

    def put(self, *objects: Any) -> None:
        """Nodes, pods (on a node or pending) and other objects as the API server would send them.

        Objects of a kind of `watches` are of its type, or dicts as they stand in files, with `apiVersion` and `kind`.
        """
        for given in objects:
            for key, obj in self._read(given):
                self.cluster.put(key, obj)

    def remove(self, *objects: Any) -> None:
        """Objects that are gone; given as to `put`."""
        for given in objects:
            for key, obj in self._read(given):
                self.cluster.remove(key, obj)

    def _read(self, given: Any) -> list[tuple[str, Any]]:
        kinds = self.cluster.kinds
        if not isinstance(given, Mapping):
            return [(key, given) for key in kinds.of_object(given)]
        infos = kinds.of_manifest(given)
        if not infos:
            wanted = f"{given.get('apiVersion')} {given.get('kind')}"
            raise UnknownKind(f"{wanted} is not watched; write FakeHandle(watches=MyPlugin.watches)")
        read = [(info.kind, info.decode(msgspec.json.encode(given))) for info in infos]
        self._raw.update((f"{kind} {obj.key}", given) for kind, obj in read)
        return read

    def raw(self, obj: Any) -> Mapping[str, Any]:
        """The dict that `put` was given; of other objects, as much as our classes know."""
        return self._raw.get(f"{type(obj).__name__} {obj.key}") or _document_of(obj)

    def serve_with(self, *plugins: Plugin, weights: Mapping[str, int] | None = None) -> None:
        """The plugins of the profile, which `what_if` and `search_victims` ask."""
        own = {plugin.plugin_name(): 1 for plugin in plugins} | dict(weights or {})
        self._profile = Profile(self.profile_name, (*plugins, _ByTime(), _NoBinder()), own)

    def watches(self, kind: str | Kind) -> bool:
        return self.cluster.kinds.has(kind)

    @property
    def scheduler_names(self) -> Collection[str]:
        return (self.profile_name,)

    @property
    def nodes(self) -> NodeTable:
        return self.cluster.nodes

    def node(self, name: str) -> NodeView | None:
        return self.cluster.node_view(name)

    def objects(self, kind: str | Kind) -> Mapping[str, Any]:
        return self.cluster.watched(kind)

    def index(self, cls: type[IndexT]) -> IndexT:
        return self.cluster.index(cls)

    def count_pods(self, key: Hashable, wanted: Callable[[PodClass], bool], budget: Budget = UNLIMITED) -> Scores:
        return self.cluster.counts.per_row(key, wanted, budget)

    def weigh_pods(self, weigh: Callable[[PodClass], int], budget: Budget = UNLIMITED) -> Scores:
        return self.cluster.classes.weigh_per_row(weigh, self.cluster.nodes, budget)

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        return self.cluster.nominations.on(node_name)

    def nominated_node(self, pod: Pod) -> str:
        return self.cluster.nominations.node_of(pod.uid)

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.cluster.nominations.remove(pod.uid)

    def what_if(self, pod: Pod, budget: Budget = UNLIMITED) -> WhatIf:
        nodes, nominations = self.cluster.nodes, self.cluster.nominations
        evaluator = Evaluator(self._profile, nodes, nominations)
        return ProfileWhatIf(Runner(self._profile, nodes), evaluator, nodes, self._nesting, pod, budget)

    def search_victims(
        self, state: CycleState, pod: Pod, rows: Rows, wanted: int, policy: VictimPolicy | None = None
    ) -> VictimSearch:
        if not self._profile.filters:
            return NoVictims()
        nodes, nominations = self.cluster.nodes, self.cluster.nominations
        dry_run = Evaluator(self._profile, nodes, nominations).dry_run
        units = VictimUnits(self.cluster.index(DisruptionBudgets), self.cluster.index(PodGroups))
        preemption = Preemption(self._profile, dry_run, nodes, nominations, units)
        return preemption.search(state, pod, rows, wanted, policy)

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

    def record_event(self, obj: Any, type_: str, reason: str, action: str, note: str) -> None:
        self.events.append((_key_of(obj), reason, note))

    def run_in_background(self, work: Callable[[], Coroutine[Any, Any, None]], name: str = "") -> None:
        self.background.append((name or work.__name__, work))

    def count(self, name: str, *labels: str, amount: int = 1) -> None:
        self.counters[name] += amount

    def observe(self, name: str, value: float, *labels: str) -> None:
        self.observed.append((name, value, *labels))

    def activate(self, pods: Iterable[Pod]) -> None:
        self.activated.extend(pods)

    def requeue_on(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self.requeued_on.append((event, old, new))

    def back_off(self, pods: Iterable[Pod]) -> None:
        self.backed_off.extend(pods)

    def awaits_view(self, pod: Pod) -> bool:
        return self.is_view_stale

    def recheck_gates(self, pods: Iterable[Pod]) -> None:
        self.rechecked.extend(pods)


def _document_of(obj: Any) -> dict[str, Any]:
    """An object in its JSON form, without what our classes leave out."""
    known: dict[str, Any] = msgspec.to_builtins(obj)
    if isinstance(obj, Pod):
        spec, status = known.pop("spec"), known.pop("status")
        spec["nodeName"] = known.pop("node_name")
        words = {name: name.title().replace("_", "") for name in known}
        known = {words[name][:1].lower() + words[name][1:]: value for name, value in known.items()}
        known = {"metadata": known, "spec": spec, "status": status}
    return {"kind": type(obj).__name__, **known}


def _key_of(obj: Any) -> str:
    if isinstance(obj, Mapping):
        obj = obj["metadata"]
        return "/".join(filter(None, (obj.get("namespace", ""), obj["name"])))
    return "/".join(filter(None, (obj.namespace, obj.name)))


class _ByTime(Plugin, QueueSort):
    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        return (queued.timestamp,)


class _NoBinder(Plugin, Bind):
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """There are no bindings through a fake handle's own profile."""
