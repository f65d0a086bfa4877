"""What plugins may use of the scheduler that runs them: `pilotage.api.Handle`, put together from its parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from typing import Any

from pilotage.api.calls import ApiCall, ApiWriter, OnOutcome
from pilotage.api.conditions import PodCondition
from pilotage.api.indexes import PodClass
from pilotage.api.preemption import Eviction, OnEvicted, VictimSearch
from pilotage.api.state import CycleState
from pilotage.api.table import NodeTable, Rows, Scores
from pilotage.api.views import IndexT, NodeView
from pilotage.calls.binding import PodBinding
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.in_place import Calls
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.cycle.scheduler import Scheduler
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import Pod
from pilotage.observe.instruments import Counter, Histogram
from pilotage.observe.metrics import Metrics


class SchedulerHandle:
    """What plugins may use of the scheduler: implements `pilotage.api.Handle`."""

    def __init__(
        self,
        cluster: Cluster,
        dispatcher: Dispatcher,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics | None = None,
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics or Metrics()
        self._dispatcher = dispatcher
        self.calls: Calls = dispatcher
        """Where plugins leave their calls."""
        self.waiting_pods = WaitingPods()
        self.clock = clock
        self.rng = rng
        self.engines: Mapping[str, ProfileEngine] = {}
        self.scheduler: Scheduler | None = None
        """Both are set once they exist: they need the plugins, and the plugins need the handle."""

    @property
    def nodes(self) -> NodeTable:
        return self._cluster.nodes

    def node(self, name: str) -> NodeView | None:
        return self._cluster.node_view(name)

    def objects(self, kind: str) -> Mapping[str, Any]:
        return self._cluster.objects(kind)

    def index(self, cls: type[IndexT]) -> IndexT:
        return self._cluster.index(cls)

    def count_pods(self, key: Hashable, wanted: Callable[[PodClass], bool]) -> Scores:
        return self._cluster.counts.per_row(key, wanted)

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        return self._cluster.nominations.on(node_name)

    def nominated_node(self, pod: Pod) -> str:
        return self._cluster.nominations.node_of(pod.uid)

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        if self.scheduler is not None:
            self.scheduler.evictor.withdraw_nominations(pods)

    def search_victims(self, state: CycleState, pod: Pod, rows: Rows, wanted: int) -> VictimSearch:
        return self.engines[pod.spec.scheduler_name].preemption.search(state, pod, rows, wanted)

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        if self.scheduler is not None:
            self.scheduler.evictor.evict(eviction, on_evicted)

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None:
        self.calls.submit(call, on_outcome)

    def perform(self, call: ApiCall) -> Coroutine[Any, Any, None]:
        return self.calls.perform(call)

    def bind(self, pod: Pod, node_name: str) -> Coroutine[Any, Any, None]:
        if self.scheduler is not None:
            return self.scheduler.writes.bind(pod, node_name)
        return self.calls.perform(PodBinding(pod, node_name))

    def patch_status(self, pod: Pod, *conditions: PodCondition, nomination: str | None = None) -> Pod:
        if self.scheduler is None:
            return pod
        return self.scheduler.writes.patch_status(pod, *conditions, nomination=nomination)

    def note_gated(self, pod: Pod) -> None:
        """A PreEnqueue plugin holds the pod back: to be told if it goes on."""
        if self.scheduler is not None:
            self.scheduler.gated.note(pod.uid, pod.uid)

    @property
    def client(self) -> ApiWriter:
        return self._dispatcher.writer

    def record_event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        if self.scheduler is not None:
            self.scheduler.recorder.record(pod, type_, reason, action, note)

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
        if self.scheduler is not None:
            self.scheduler.activate([pod.uid for pod in pods])

    def recheck_gates(self, pods: Iterable[Pod]) -> None:
        if self.scheduler is not None:
            self.scheduler.queue.recheck_gates([pod.uid for pod in pods])
