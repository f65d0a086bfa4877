"""Whom a group drives out: victims for all of its members at once, and nobody unless the group then fits.

First everybody of lower priority is imagined away, wherever he is. If the group does not fit then, nobody goes. Then
they are brought back, the most important first (those under a disruption budget before all others): who cannot come
back without displacing a member is a victim. So no victim is one too many.

Pods of a group that is disrupted as a whole go or stay together, wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from pilotage.api.group_members import PodGroups, group_key
from pilotage.api.pod_groups import GroupVictims
from pilotage.api.preemption import started_at
from pilotage.api.state import CycleState
from pilotage.cluster.state import Cluster
from pilotage.cycle.group_placement import GroupOutcome, GroupPlacer, Member
from pilotage.cycle.placement import ProfileEngine
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup

NO_VICTIMS = "No preemption victims found for incoming preemptor"


class Unit(Struct, frozen=True):
    """Pods that go or stay together."""

    pods: tuple[Pod, ...]
    priority: int
    is_of_group: bool

    @property
    def importance(self) -> tuple[float, ...]:
        """The most important first."""
        return -self.priority, not self.is_of_group, -len(self.pods), min(map(started_at, self.pods))


class GroupPreemption:
    """Searches on the cluster itself, which is afterwards as it was."""

    def __init__(self, engine: ProfileEngine, cluster: Cluster, groups: PodGroups) -> None:
        self._engine = engine
        self._cluster = cluster
        self._groups = groups
        self._budgets = cluster.index(DisruptionBudgets)
        self._placer = GroupPlacer(engine, cluster, groups)

    def search(
        self, group: PodGroup, pods: Sequence[Pod], place: Callable[[Sequence[Member]], GroupOutcome]
    ) -> GroupVictims:
        units = self._units(group)
        if not units:
            return GroupVictims(message=NO_VICTIMS)
        lifted = {pod.uid: self._lift(pod) for unit in units for pod in unit.pods}
        members = [Member(pod, CycleState()) for pod in pods]
        outcome = place(members)
        try:
            if not outcome.fits or not outcome.placed:
                return GroupVictims(message=outcome.message)
            units.sort(key=lambda unit: unit.importance)
            protected = self._budgets.protected([pod for unit in units for pod in unit.pods])
            in_order = sorted(units, key=lambda unit: all(pod.uid not in protected for pod in unit.pods))
            victims = [unit for unit in in_order if not self._is_spared(unit, outcome.placed, lifted)]
            victims.sort(key=lambda unit: unit.importance)
            places = tuple((member.pod, member.placed.node_name) for member in outcome.placed if member.placed)
            return GroupVictims(tuple(pod for unit in victims for pod in unit.pods), places)
        finally:
            self._placer.give_back(outcome.placed)
            for put_back in lifted.values():
                put_back()

    def _units(self, group: PodGroup) -> list[Unit]:
        """Everybody who might go for the sake of the group."""
        nodes, priority = self._cluster.nodes, group.priority
        units: list[Unit] = []
        together: set[str] = set()
        for row in range(len(nodes)):
            for pod in nodes.pods_on(row).values():
                key = group_key(pod)
                its_group = self._groups.objects.get(key) if key else None
                if its_group is None:
                    if pod.priority < priority:
                        units.append(Unit((pod,), pod.priority, is_of_group=bool(key)))
                elif its_group.priority >= priority or key in together:
                    continue
                elif its_group.is_disrupted_as_one:
                    together.add(key)
                    pods = tuple(self._groups.scheduled(key).values())
                    units.append(Unit(pods, its_group.priority, is_of_group=True))
                else:
                    units.append(Unit((pod,), its_group.priority, is_of_group=True))
        return units

    def _lift(self, pod: Pod) -> Callable[[], None]:
        """Imagine a pod away; call what is returned to have it back (more than once does no harm)."""
        cluster, uid = self._cluster, pod.uid
        was_assumed = cluster.is_assumed(uid)
        known = cluster.remove_pod(uid)

        def put_back() -> None:
            if known is not None and cluster.placed_pod(uid) is None:
                (cluster.assume if was_assumed else cluster.put_pod)(known)

        return put_back

    def _is_spared(self, unit: Unit, placed: Sequence[Member], lifted: dict[str, Callable[[], None]]) -> bool:
        """Let the unit's pods come back, unless a member would have to give way."""
        for pod in unit.pods:
            lifted[pod.uid]()
        nodes = {pod.node_name for pod in unit.pods}
        beside = [m for m in placed if m.assumed is not None and m.assumed.node_name in nodes]
        concerned = list(placed) if any(_looks_around(pod) for pod in (*unit.pods, placed[0].pod)) else beside
        if not concerned or self._still_fit(concerned):
            return True
        for pod in unit.pods:
            self._cluster.remove_pod(pod.uid)
        return False

    def _still_fit(self, members: Sequence[Member]) -> bool:
        """Do these members fit where they are, one after the other? They are there afterwards in any case."""
        held = [(member, member.assumed) for member in members if member.assumed is not None]
        for _, assumed in held:
            self._cluster.forget(assumed.uid)
        is_fitting = True
        for _, assumed in held:
            is_fitting = is_fitting and self._fits(assumed)
            self._cluster.assume(assumed)
        return is_fitting

    def _fits(self, assumed: Pod) -> bool:
        engine, state = self._engine, CycleState()
        pod = assumed.with_node("")
        row = engine.nodes.row(assumed.node_name)
        if row is None:
            return False
        outcome = engine.runner.pre_filter(state, pod)
        if outcome.rejected is not None or (outcome.allowed is not None and not outcome.allowed[row]):
            return False
        return engine.evaluator.dry_run.rejection_as_nominated(state, pod, row) is None


def _looks_around(pod: Pod) -> bool:
    """Does the pod care who is on other nodes?"""
    return pod.spec.affinity is not None or bool(pod.spec.topology_spread_constraints)
