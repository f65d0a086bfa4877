"""What plugins may use of the scheduler that runs them: `pilotage.api.Handle`, put together from its parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import msgspec

from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.calls import ApiCall, ApiWriter, OnOutcome
from pilotage.api.conditions import PodCondition
from pilotage.api.events import ClusterEvent
from pilotage.api.indexes import PodClass
from pilotage.api.kinds import Kind
from pilotage.api.preemption import Eviction, OnEvicted, VictimPolicy, VictimSearch
from pilotage.api.state import CycleState
from pilotage.api.table import NodeTable, Rows, Scores
from pilotage.api.views import IndexT, NodeView
from pilotage.calls.binding import PodBinding
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.event import subject_of
from pilotage.calls.no_api import NoApi
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.cycle.eviction import Evictor
from pilotage.cycle.placement import ProfileEngine
from pilotage.cycle.plugin_tasks import BackgroundWork, PluginTasks, check_background
from pilotage.cycle.requeueing import Requeueing
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.framework.what_if import Nesting, ProfileWhatIf
from pilotage.model import Pod
from pilotage.observe.instruments import Counter, Histogram
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_metrics import PluginMetricTable


class NoEffects:
    """What plugins can bring about where there is no scheduler: calls are taken, and nothing else follows."""

    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls or Dispatcher(NoApi())
        self.waiting_pods = WaitingPods()

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        """Evict nothing."""

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        """They stay."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self.calls.perform(PodBinding(pod, node_name))

    def patch_status(self, pod: Pod, *conditions: PodCondition, nomination: str | None = None) -> Pod:
        return pod

    def record_event(self, subject: Any, reporter: str, type_: str, reason: str, action: str, note: str) -> None:
        """Drop the Event."""

    def run_in_background(self, plugin: str, work: BackgroundWork, name: str) -> None:
        check_background(work)

    def activate(self, uids: Iterable[str]) -> None:
        """There is no queue here, nor for the next three."""

    def requeue_on(self, event: ClusterEvent, old: Any, new: Any) -> None: ...

    def back_off(self, uids: Iterable[str]) -> None: ...

    def recheck_gates(self, uids: Iterable[str]) -> None: ...

    def awaits_view(self, uid: str) -> bool:
        return False


class SchedulerEffects:
    """What plugins can bring about in a running scheduler: all of its ways to act."""

    def __init__(
        self,
        writes: ClusterWrites,
        evictor: Evictor,
        recorder: EventRecorder,
        requeueing: Requeueing,
        waiting_pods: WaitingPods,
        background: PluginTasks,
    ) -> None:
        self.writes = writes
        self.recorder = recorder
        self.requeueing = requeueing
        self.waiting_pods = waiting_pods
        self.calls = writes.calls
        self.evict = evictor.evict
        self.withdraw_nominations = requeueing.withdraw_nominations
        self.bind = writes.bind
        self.patch_status = writes.patch_status
        self.record_event = recorder.record_about
        self.run_in_background = background.add
        self.activate = requeueing.activate
        self.requeue_on = requeueing.requeue_on
        self.back_off = requeueing.back_off
        self.recheck_gates = requeueing.recheck_gates
        self.awaits_view = requeueing.view_of_pods.holds


class FrameworkHandle:
    """What plugins may use of the framework that runs them.

    Implements `pilotage.api.Handle`; each plugin gets one of its own. Questions are answered from cluster and engines;
    whatever has effects goes to `effects`.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics | None = None,
        effects: NoEffects | SchedulerEffects | None = None,
        engines: Mapping[str, ProfileEngine] | None = None,
    ) -> None:
        """`engines` by profile: while plugins are being made, theirs is not there yet."""
        self._cluster = cluster
        self._metrics = metrics or Metrics()
        self._effects = effects or NoEffects()
        self.waiting_pods = self._effects.waiting_pods
        self.clock = clock
        self.rng = rng
        self.metrics = PluginMetricTable(self._metrics)
        self.profile_name = ""
        self._plugin = ""
        self._nesting = Nesting()
        self._engines: Mapping[str, ProfileEngine] = {} if engines is None else engines

    def for_plugin(self, profile_name: str, plugin: str) -> Self:
        """The handle of one plugin; everything that it leads to is the same for all of them."""
        own = copy(self)
        own.profile_name, own._plugin = profile_name, plugin
        return own

    @property
    def nodes(self) -> NodeTable:
        return self._cluster.nodes

    def watches(self, kind: str | Kind) -> bool:
        return self._cluster.kinds.has(kind)

    @property
    def scheduler_names(self) -> Collection[str]:
        return self._engines.keys()

    def node(self, name: str) -> NodeView | None:
        return self._cluster.node_view(name)

    def objects(self, kind: str | Kind) -> Mapping[str, Any]:
        return self._cluster.watched(kind)

    def raw(self, obj: Any) -> Mapping[str, Any]:
        data = self._cluster.json_of(obj)
        if data is None:
            kind = type(obj).__name__
            raise LookupError(
                f'the JSON of {kind} {obj.key} is not kept; write raw_kinds = frozenset(["{kind}"]) into {self._plugin}'
            )
        found: dict[str, Any] = msgspec.json.decode(data)
        return found

    def index(self, cls: type[IndexT]) -> IndexT:
        return self._cluster.index(cls)

    def count_pods(self, key: Hashable, wanted: Callable[[PodClass], bool], budget: Budget = UNLIMITED) -> Scores:
        return self._cluster.counts.per_row(key, wanted, budget)

    def weigh_pods(self, weigh: Callable[[PodClass], int], budget: Budget = UNLIMITED) -> Scores:
        return self._cluster.classes.weigh_per_row(weigh, self._cluster.nodes, budget)

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        return self._cluster.nominations.on(node_name)

    def nominated_node(self, pod: Pod) -> str:
        return self._cluster.nominations.node_of(pod.uid)

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        self._effects.withdraw_nominations(pods)

    def what_if(self, pod: Pod, budget: Budget = UNLIMITED) -> ProfileWhatIf:
        engine = self._engines.get(self.profile_name)
        if engine is None:
            raise RuntimeError("what_if: the plugins are still being made; ask from an extension point")
        return ProfileWhatIf(engine.runner, engine.evaluator, engine.nodes, self._nesting, pod, budget)

    def search_victims(
        self, state: CycleState, pod: Pod, rows: Rows, wanted: int, policy: VictimPolicy | None = None
    ) -> VictimSearch:
        return self._engines[pod.spec.scheduler_name].preemption.search(state, pod, rows, wanted, policy)

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        self._effects.evict(eviction, on_evicted)

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None:
        self._effects.calls.submit(call, on_outcome)

    def perform(self, call: ApiCall) -> Coroutine[Any, Any, None]:
        return self._effects.calls.perform(call)

    def bind(self, pod: Pod, node_name: str) -> Coroutine[Any, Any, None]:
        return self._effects.bind(pod, node_name)

    def patch_status(self, pod: Pod, *conditions: PodCondition, nomination: str | None = None) -> Pod:
        return self._effects.patch_status(pod, *conditions, nomination=nomination)

    @property
    def client(self) -> ApiWriter:
        return self._effects.calls.writer

    def record_event(self, obj: Any, type_: str, reason: str, action: str, note: str) -> None:
        subject = subject_of(obj)
        reporter = subject.spec.scheduler_name if isinstance(subject, Pod) else self.profile_name
        self._effects.record_event(subject, reporter, type_, reason, action, note)

    def run_in_background(self, work: BackgroundWork, name: str = "") -> None:
        self._effects.run_in_background(self._plugin, work, name)

    def count(self, name: str, *labels: str, amount: int = 1) -> None:
        own = self._metrics.named(name)
        if isinstance(own, Counter):
            own.add(*labels, amount=amount)
        else:
            self._metrics.plugin_counter_total.add(name, amount=amount)

    def observe(self, name: str, value: float, *labels: str) -> None:
        own = self._metrics.named(name)
        if not isinstance(own, Histogram):
            raise ValueError(f'the scheduler has no histogram "{name}"')
        own.observe(value, *labels)

    def activate(self, pods: Iterable[Pod]) -> None:
        self._effects.activate([pod.uid for pod in pods])

    def requeue_on(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self._effects.requeue_on(event, old, new)

    def back_off(self, pods: Iterable[Pod]) -> None:
        self._effects.back_off([pod.uid for pod in pods])

    def awaits_view(self, pod: Pod) -> bool:
        return self._effects.awaits_view(pod.uid)

    def recheck_gates(self, pods: Iterable[Pod]) -> None:
        self._effects.recheck_gates([pod.uid for pod in pods])
