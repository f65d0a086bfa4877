"""Preemption for a pod group: victims for all of its members at once, and none unless the group then fits.

First all pods of lower priority are imagined away. If it does not fit then, none is evicted. Then they are brought
back, the most important first (those under a disruption budget before all others): who cannot come back without
displacing a member is a victim. So no victim is one too many.

But the members have gone where they score best on an empty cluster. So it is tried once more with all pods there, and
room made for each member that needs it (`room_making`); of the two searches the one that does less harm counts.

    amounts are all that counts    on a copy of the columns (`without_lower`); only the members' nodes are looked at
    pods count, too                the pods are taken off the cluster and put back: affinity, spreading, host ports

Either way the cluster is afterwards as it was, whatever a plugin raises (but for the order of the pods of a node).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pilotage.api.group_members import PodGroups, group_key
from pilotage.api.plugin import Sees
from pilotage.api.pod_groups import GroupVictims
from pilotage.api.state import CycleState
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.state import Cluster
from pilotage.cycle.group_placement import IS_UNSCHEDULABLE, GroupOutcome, GroupPlacer, Member
from pilotage.cycle.placement import ProfileEngine, victim_units
from pilotage.cycle.room_making import RoomMaker
from pilotage.framework.preemption.units import Unit, VictimUnits
from pilotage.framework.profile import name_of
from pilotage.model import Pod, PodSpec
from pilotage.model.pod_group import PodGroup

IsSpared = Callable[[Unit], bool]
"""Lets a unit come back, unless a member would have to give way."""

NO_VICTIMS = "No preemption victims found for incoming preemptor"


class GroupPreemption:
    """Searches with the filters and scores of one profile."""

    def __init__(self, engine: ProfileEngine, cluster: Cluster, placer: GroupPlacer) -> None:
        self._engine = engine
        self._cluster = cluster
        self._placer = placer
        self._units = victim_units(cluster)

    def search(self, group: PodGroup, members: Sequence[Member]) -> GroupVictims:
        nodes, priority = self._cluster.nodes, group.priority
        if self._counts_as_it_says(priority):
            if not nodes.below(priority).count.values(len(nodes)).any():
                return GroupVictims(message=NO_VICTIMS)
            found = self._search_on_columns(group, members)
            if found is not None:
                return found
        pods = (pod for row in range(len(nodes)) for pod in nodes.pods_on(row).values())
        units = self._units.below(pods, priority)
        return self._search_everywhere(group, members, units) if units else GroupVictims(message=NO_VICTIMS)

    def _counts_as_it_says(self, priority: int) -> bool:
        """Whether every pod is as important as its own priority says, not as its group's."""
        groups = self._cluster.index(PodGroups)
        return all(
            (pod.priority < priority) == (group.priority < priority)
            for key, group in groups.objects.items()
            for pod in groups.scheduled(key).values()
        )

    @contextmanager
    def _placed(self, group: PodGroup, members: Sequence[Member]) -> Iterator[GroupOutcome]:
        """The members where they would be, until the block ends."""
        outcome = self._placer.place(group, _anew(members))
        try:
            yield outcome
        finally:
            self._placer.give_back(outcome.placed)

    def _search_on_columns(self, group: PodGroup, members: Sequence[Member]) -> GroupVictims | None:
        """None if the members care for more than amounts."""
        nodes, units = self._cluster.nodes, self._units
        with nodes.without_lower(group.priority) as gone, self._placed(group, members) as outcome:
            by_spec = {member.pod.spec: member for member in reversed(outcome.members)}
            if not all(_looks_at_amounts_only(self._engine, member) for member in by_spec.values()):
                return None
            if not outcome.fits or not outcome.placed:
                return GroupVictims(message=outcome.message or IS_UNSCHEDULABLE)
            placed = outcome.placed
            rows: Mapping[int, object] | set[int] = gone
            if not units.budgets.concern(pod for pods in gone.values() for pod in pods.values()):
                # What a budget allows is counted over all pods; without one, only those beside members may have to go.
                rows = {row for member in placed if (row := nodes.row(_node_of(member))) in gone and row is not None}
            concerned = units.below((pod for row in rows for pod in gone[row].values()), group.priority)
            floor = _OnColumns(nodes)
            found = _found(placed, _victims(units, concerned, floor.trial(self._engine, placed)))
        lower = [pod for pods in gone.values() for pod in pods.values() if pod.priority < group.priority]
        return self._with_less_harm(found, group, outcome, lower, floor)

    def _search_everywhere(self, group: PodGroup, members: Sequence[Member], units: list[Unit]) -> GroupVictims:
        floor = _OnCluster(self._cluster)
        lower = [pod for unit in units for pod in unit.pods]
        with floor.brought_back():
            for pod in lower:
                floor.take(pod)
            with self._placed(group, members) as outcome:
                if not outcome.fits or not outcome.placed:
                    return GroupVictims(message=outcome.message or IS_UNSCHEDULABLE)
                found = _found(outcome.placed, _victims(self._units, units, floor.trial(self._engine, outcome.placed)))
        return self._with_less_harm(found, group, outcome, lower, floor)

    def _with_less_harm(
        self, found: GroupVictims, group: PodGroup, outcome: GroupOutcome, lower: Sequence[Pod], floor: _Floor
    ) -> GroupVictims:
        """Other victims, if making room node by node in the same placement for as many members does less harm."""
        if not found.victims:
            return found
        # To those that only imagine a higher priority for the group its own members look less important, too.
        others = [pod for pod in lower if group_key(pod) != group.key]
        room = RoomMaker(self._cluster.nodes, self._units, group.priority, others, floor)
        with floor.brought_back():
            other = self._placer.place_within(group, _anew(outcome.members), outcome.within, make_room=room.make)
            try:
                if not other.fits or len(other.placed) < len(found.places):
                    return found
                other_found = _found(
                    other.placed, _victims(self._units, room.gone, floor.trial(self._engine, other.placed))
                )
            finally:
                self._placer.give_back(other.placed)
        return min(found, other_found, key=self._harm)

    def _harm(self, found: GroupVictims) -> tuple[int, int, int, int]:
        """As for a single pod: budgets first, then the most important victim; then how many there are."""
        priorities = [unit.priority for unit in self._units.of(found.victims)]
        return found.violations, max(priorities, default=0), len(found.victims), sum(priorities)


def _anew(members: Iterable[Member]) -> list[Member]:
    return [Member(member.pod, CycleState(), member.council) for member in members]


def _victims(units: VictimUnits, candidates: list[Unit], is_spared: IsSpared) -> tuple[tuple[Pod, ...], int]:
    """The pods of those that cannot be spared, the most important first, and how many of them budgets protect."""
    # Of equals the one whose name comes first stays, in whatever order they were found.
    candidates.sort(key=lambda unit: (unit.importance, min((pod.namespace, pod.name) for pod in unit.pods)))
    protected = units.budgets.protected([pod for unit in candidates for pod in unit.pods])
    in_order = sorted(candidates, key=lambda unit: all(pod.uid not in protected for pod in unit.pods))
    victims = [unit for unit in in_order if not is_spared(unit)]
    victims.sort(key=lambda unit: unit.importance)
    pods = tuple(pod for unit in victims for pod in unit.pods)
    return pods, sum(pod.uid in protected for pod in pods)


def _found(placed: Sequence[Member], victims: tuple[tuple[Pod, ...], int]) -> GroupVictims:
    pods, violations = victims
    return GroupVictims(pods, tuple((member.pod, _node_of(member)) for member in placed), violations=violations)


def _node_of(member: Member) -> str:
    return member.assumed.node_name if member.assumed is not None else ""


def _rejection(engine: ProfileEngine, state: CycleState, assumed: Pod) -> bool:
    """Whether a filter rejects the pod, of whose PreFilter the state is, on its node. It must not be counted there."""
    row = engine.nodes.row(assumed.node_name)
    pod = assumed.with_node("")
    return row is None or engine.evaluator.dry_run.rejection_as_nominated(state, pod, row) is not None


# --- amounts are all that counts --------------------------------------------------------------------------------------


def _looks_at_amounts_only(engine: ProfileEngine, member: Member) -> bool:
    """Whether nothing but nodes and amounts on them decided where this member goes."""
    if member.placed is None and not member.message and member.error is None:
        return True  # no extender was asked about it
    filters = (one for one in engine.profile.filters if name_of(one) not in member.state.skip_filter)
    if any(one.filter_sees > Sees.AMOUNTS for one in filters):
        return False
    return not engine.evaluator.asks_around(member.state, member.pod)


class _OnColumns:
    """Takes pods off the rows of the table; nobody else knows of it."""

    def __init__(self, nodes: ClusterNodeTable) -> None:
        self._nodes = nodes
        self._taken: dict[str, Pod] = {}

    def take(self, pod: Pod) -> None:
        self._taken[pod.uid] = pod
        self._nodes.remove_pod(pod.node_name, pod)

    def put_back(self, pod: Pod) -> None:
        row = self._nodes.row(pod.node_name)
        if row is not None and pod.uid not in self._nodes.pods_on(row):
            self._nodes.add_pod(pod.node_name, pod)

    @contextmanager
    def brought_back(self) -> Iterator[None]:
        """At the end all pods are where they were."""
        try:
            yield
        finally:
            for pod in self._taken.values():
                self.put_back(pod)
            self._taken.clear()

    def trial(self, engine: ProfileEngine, placed: Sequence[Member]) -> IsSpared:
        return _TrialOnColumns(engine, placed).is_spared


class _TrialOnColumns:
    """Brings units back on rows from which all pods of lower priority are imagined away."""

    def __init__(self, engine: ProfileEngine, placed: Sequence[Member]) -> None:
        self._engine = engine
        self._nodes = engine.nodes
        self._states: dict[PodSpec, CycleState] = {}
        self._last: dict[str, dict[PodSpec, Pod]] = {}
        """By node and spec: the last member that was placed there. If it fits beside all others, so do they."""
        for member in placed:
            if member.assumed is not None:
                self._last.setdefault(member.assumed.node_name, {})[member.pod.spec] = member.assumed

    def is_spared(self, unit: Unit) -> bool:
        """Let the unit's pods come back, unless a member would have to give way."""
        back = [pod for pod in unit.pods if pod.node_name in self._last]
        for pod in back:
            self._nodes.add_pod(pod.node_name, pod)
        is_fitting = all(
            self._fits(member)
            for name in dict.fromkeys(pod.node_name for pod in back)
            for member in self._last[name].values()
        )
        if not is_fitting:
            for pod in back:
                self._nodes.remove_pod(pod.node_name, pod)
        return is_fitting

    def _fits(self, assumed: Pod) -> bool:
        state = self._states.get(assumed.spec)
        if state is None:
            state = self._states[assumed.spec] = CycleState()
            self._engine.runner.pre_filter(state, assumed.with_node(""))
        self._nodes.remove_pod(assumed.node_name, assumed)
        try:
            return not _rejection(self._engine, state, assumed)
        finally:
            self._nodes.add_pod(assumed.node_name, assumed)


# --- pods count, too --------------------------------------------------------------------------------------------------


class _OnCluster:
    """Takes pods off the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._taken: dict[str, tuple[Pod, bool]] = {}

    def take(self, pod: Pod) -> None:
        self._taken.setdefault(pod.uid, (pod, self._cluster.is_assumed(pod.uid)))
        self._cluster.remove_pod(pod.uid)

    def put_back(self, pod: Pod) -> None:
        known, was_assumed = self._taken[pod.uid]
        if self._cluster.placed_pod(pod.uid) is None:
            (self._cluster.assume if was_assumed else self._cluster.put_pod)(known)

    @contextmanager
    def brought_back(self) -> Iterator[None]:
        """At the end all pods are where they were."""
        try:
            yield
        finally:
            for known, _ in self._taken.values():
                self.put_back(known)
            self._taken.clear()

    def trial(self, engine: ProfileEngine, placed: Sequence[Member]) -> IsSpared:
        return _TrialEverywhere(engine, self._cluster, placed, self.put_back).is_spared


_Floor = _OnColumns | _OnCluster


class _TrialEverywhere:
    """Brings units back on the cluster itself."""

    def __init__(
        self, engine: ProfileEngine, cluster: Cluster, placed: Sequence[Member], put_back: Callable[[Pod], None]
    ) -> None:
        self._engine = engine
        self._cluster = cluster
        self._placed = [member.assumed for member in placed if member.assumed is not None]
        self._put_back = put_back

    def is_spared(self, unit: Unit) -> bool:
        """Let the unit's pods come back, unless a member would have to give way."""
        for pod in unit.pods:
            self._put_back(pod)
        if self._still_fit(self._concerned(unit)):
            return True
        for pod in unit.pods:
            self._cluster.remove_pod(pod.uid)
        return False

    def _concerned(self, unit: Unit) -> list[Pod]:
        """The members to whom it can matter that the unit is there."""
        if any(_looks_around(pod) for pod in (*unit.pods, *self._placed[:1])):
            return self._placed
        nodes = {pod.node_name for pod in unit.pods}
        return [assumed for assumed in self._placed if assumed.node_name in nodes]

    def _still_fit(self, members: Sequence[Pod]) -> bool:
        """Whether these members fit where they are, one after the other. They are there afterwards in any case."""
        is_fitting = True
        for assumed in members:
            self._cluster.forget(assumed.uid)
        try:
            for assumed in members:
                is_fitting = is_fitting and self._fits(assumed)
                self._cluster.assume(assumed)
        finally:
            for assumed in members:
                if self._cluster.placed_pod(assumed.uid) is None:
                    self._cluster.assume(assumed)
        return is_fitting

    def _fits(self, assumed: Pod) -> bool:
        engine, state = self._engine, CycleState()
        row = engine.nodes.row(assumed.node_name)
        outcome = engine.runner.pre_filter(state, assumed.with_node(""))
        if row is None or outcome.rejected is not None or (outcome.allowed is not None and not outcome.allowed[row]):
            return False
        return not _rejection(engine, state, assumed)


def _looks_around(pod: Pod) -> bool:
    """Whether the pod depends on the pods of other nodes."""
    return pod.spec.affinity is not None or bool(pod.spec.topology_spread_constraints)
