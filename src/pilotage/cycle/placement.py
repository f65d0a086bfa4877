"""Placement: filter, score and choose a node for a pod, without side effects.

`place` is the same for the live scheduler, the simulator, `explain` and dry runs: no clock, no network, no effect
outside the cycle state that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from pilotage.api.group_members import PodGroups
from pilotage.api.plugin import RAISED
from pilotage.api.points import QueueSort
from pilotage.api.results import Nominate
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.api.views import QueuedPod
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.framework.diagnosis import Diagnosis, Rejected, rejection_text
from pilotage.framework.errors import PluginError, shown
from pilotage.framework.evaluation import Evaluator
from pilotage.framework.node_sampling import NodeSampling
from pilotage.framework.plugin_meter import PluginMeter
from pilotage.framework.preemption import Preemption
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.units import VictimUnits
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.runner import PreFilterOutcome, Runner
from pilotage.model import Pod
from pilotage.model.kinds import POD_GROUPS
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_errors import PluginErrors
from pilotage.queue.hints import HintTable

_NUMBERS: Final = frozenset((int, float))


class Placed(Struct, frozen=True):
    """The pod fits; this is the best node."""

    node_name: str
    score: int


class Unplaced(Struct, frozen=True):
    """No node fits, and what PostFilter made of it."""

    diagnosis: Diagnosis
    nomination: Nominate
    error: PluginError | None = None
    """What went wrong in PostFilter."""


class NoNodes(Exception):
    """There is no node at all: nothing that a plugin could be blamed for."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


def victim_units(cluster: Cluster) -> VictimUnits:
    """What preemption makes go together; where no groups are scheduled every pod goes by itself."""
    groups = cluster.index(PodGroups) if POD_GROUPS in cluster.kinds.own else PodGroups()
    return VictimUnits(cluster.index(DisruptionBudgets), groups)


class ProfileEngine:
    """A profile together with what runs it over the nodes: all of them unless there is a `walk` to be shared."""

    def __init__(self, profile: Profile, cluster: Cluster, walk: NodeSampling | None = None) -> None:
        self.profile = profile
        self.nodes = cluster.nodes
        self.nominations = cluster.nominations
        self.skipped = cluster.skipped
        self.runner = Runner(profile, cluster.nodes)
        self.evaluator = Evaluator(profile, cluster.nodes, cluster.nominations, walk)
        self.preemption = Preemption(
            profile,
            self.evaluator.dry_run,
            cluster.nodes,
            cluster.nominations,
            victim_units(cluster),
        )


class ProfileEngines(Mapping[str, ProfileEngine]):
    """The profiles of a scheduler by its names: who serves a pod, and what all of them say before it is tried."""

    def __init__(
        self,
        cluster: Cluster,
        hints: HintTable,
        metrics: Metrics,
        clock: Clock,
        walk: NodeSampling | None = None,
        outsiders: Sequence[str] = (),
    ) -> None:
        """`outsiders` reject pods too, besides plugins."""
        self.cluster = cluster
        self.meters: dict[str, PluginMeter] = {}
        self._engines: dict[str, ProfileEngine] = {}
        self._hints = hints
        self._metrics = metrics
        self._clock = clock
        self._errors = PluginErrors(metrics)
        self._outsiders = outsiders
        self.walk = walk or NodeSampling(cluster.nodes)

    def add(self, profile: Profile) -> None:
        """One more profile; the first one orders the queue."""
        name = profile.scheduler_name
        self._engines[name] = ProfileEngine(profile, self.cluster, self.walk)
        self.meters[name] = PluginMeter(profile, self._metrics, self._clock)
        self._hints.add(name, profile.plugins, self._outsiders)
        if len(self._engines) == 1:
            self._queue_sort: QueueSort = profile.queue_sort[0]

    def __getitem__(self, name: str) -> ProfileEngine:
        return self._engines[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._engines)

    def __len__(self) -> int:
        return len(self._engines)

    def pre_enqueue_rejection(self, pod: Pod) -> tuple[str, str] | None:
        """The plugin that holds the pod back, and why; None if it may be tried."""
        name = pod.spec.scheduler_name
        try:
            rejected = self.meters[name].gate(self._engines[name].runner.pre_enqueue, pod)
        except PluginError as error:
            self._errors.note(error.plugin, error.point, error.__cause__ or error, pod.key)
            return error.plugin, str(error)
        return None if rejected is None else (rejected.plugin, rejection_text(rejected.rejection))

    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        """QueueSort; a pod for which the plugin has no order is sorted as PrioritySort would, and that is counted."""
        try:
            return _comparable(self._queue_sort.sort_key(queued))
        except RAISED as error:
            self._errors.note(name_of(self._queue_sort), "QueueSort", error, queued.pod.key)
            return (-queued.pod.priority, queued.timestamp)


def _comparable(key: object) -> tuple[float, ...]:
    """A sort key that any other one can be compared with: a tuple of numbers."""
    # Asked for each pod that comes or moves: a set of the types is the fastest look at all of them.
    if type(key) is tuple and _NUMBERS.issuperset(map(type, key)):
        for part in key:
            if part != part:
                break
        else:
            return key
    raise TypeError(f"expected a tuple of numbers as sort key, got {shown(key)}")


def place(
    engine: ProfileEngine,
    state: CycleState,
    pod: Pod,
    *,
    within: Mask | None = None,
    asks_post_filter: bool = True,
) -> Placed | Unplaced:
    """Filter, score and choose among all rows or those `within`; if nothing fits, say why and ask PostFilter."""
    nodes = engine.nodes
    if not len(nodes):
        raise NoNodes
    outcome = engine.runner.pre_filter(state, pod)
    outcome.keep_within(within)
    if outcome.rejected is not None:
        return _unplaced_within(engine, state, pod, outcome, within, asks_post_filter)
    nominated = nominated_row(engine, pod)
    if nominated is not None and within is not None and not within[nominated]:
        nominated = None
    if nominated is not None and engine.evaluator.dry_run.rejection_as_nominated(state, pod, nominated) is None:
        # What was nominated and fits is taken; nothing else is looked at.
        return Placed(nodes.names[nominated], 0)
    best = engine.evaluator.best(state, pod, outcome.allowed)
    if best is None:
        return _unplaced_within(engine, state, pod, outcome, within, asks_post_filter)
    return Placed(nodes.names[best.row], best.total)


def nominated_row(engine: ProfileEngine, pod: Pod) -> int | None:
    """The row of the pod's nominated node, if there is such a node."""
    # We know of a nomination before the pod's own status has come back from the API server.
    name = engine.nominations.node_of(pod.uid) or pod.status.nominated_node_name
    return engine.nodes.row(name) if name else None


def diagnose(engine: ProfileEngine, state: CycleState, pod: Pod, outcome: PreFilterOutcome) -> Diagnosis:
    """Why each node was rejected, after PreFilter ended with `outcome`."""
    diagnosis = Diagnosis(node_names=tuple(engine.nodes.names))
    if outcome.rejected is not None:
        engine.runner.rejected_everywhere(diagnosis, outcome.rejected, outcome.restricting)
        return diagnosis
    judged: dict[int, Rejected] = {}
    nominated = nominated_row(engine, pod)
    if nominated is not None:
        # The nominated node was tried before PreFilter's restriction was applied.
        rejected = engine.evaluator.dry_run.rejection_as_nominated(state, pod, nominated)
        if rejected is not None:
            judged[nominated] = rejected
    engine.runner.note_restriction(diagnosis, outcome, judged)
    engine.evaluator.diagnose(state, pod, diagnosis, outcome.allowed, judged)
    return diagnosis


def _unplaced_within(
    engine: ProfileEngine,
    state: CycleState,
    pod: Pod,
    pre_filtered: PreFilterOutcome,
    within: Mask | None,
    asks_post_filter: bool,
) -> Unplaced:
    diagnosis = diagnose(engine, state, pod, pre_filtered)
    if within is not None:
        diagnosis.limit_to(within)
    return unplaced(engine, state, pod, diagnosis) if asks_post_filter else Unplaced(diagnosis, Nominate())


def unplaced(engine: ProfileEngine, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Unplaced:
    """Ask PostFilter about a pod that fits nowhere."""
    if not engine.profile.post_filter:
        # Nothing could keep a nomination alive.
        return Unplaced(diagnosis, Nominate(""))
    outcome = engine.runner.post_filter(state, pod, diagnosis)
    return Unplaced(diagnosis, outcome.nomination, outcome.error)
