"""What becomes of the members of a group on the cluster as it is, or as it would be; afterwards it is as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pilotage.api.budget import Budget
from pilotage.api.pod_groups import GroupVictims, Placement
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.state import Cluster
from pilotage.cycle.group_placement import GroupOutcome, GroupPlacer, Member
from pilotage.cycle.group_preemption import GroupPreemption
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.report import MemberLack
from pilotage.framework.errors import PluginError
from pilotage.model import Node, Pod
from pilotage.model.pod_group import Chosen, GangPolicy, PodGroup, SchedulingPolicy

Lacking = Callable[[Sequence[Pod], Mask | None], tuple[MemberLack, ...]]
"""Asked why these pods have no place, while those that fit hold theirs."""


class Trial(Struct, frozen=True):
    """How an attempt to place a group ended."""

    fits: bool
    error: str = ""
    domain: str = ""
    places: tuple[tuple[Pod, str], ...] = ()


class DomainTrial(Struct, frozen=True):
    """How many members fit in one domain."""

    name: str
    nodes: int
    fits: int
    lacks: tuple[MemberLack, ...]


class GroupTrials:
    """Tries groups out on a cluster. Members hold what they are given only within a call."""

    def __init__(self, engine: ProfileEngine, cluster: Cluster, budget: Budget) -> None:
        self.engine = engine
        self.cluster = cluster
        self._budget = budget
        self._placer = GroupPlacer(engine, cluster, self)

    def begin_member(self, pod: Pod) -> None:
        """Whoever asks may not keep others waiting for long."""
        self._budget.check()

    def place(self, group: PodGroup, pods: Sequence[Pod]) -> Trial:
        """As the group's cycle would place them."""
        outcome = self._placer.place(group, [Member(pod, CycleState()) for pod in pods])
        try:
            places = tuple((member.pod, member.placed.node_name) for member in outcome.placed if member.placed)
            return Trial(outcome.fits and bool(places), outcome.error, outcome.name, places)
        finally:
            self._placer.give_back(outcome.placed)

    def victims(self, group: PodGroup, pods: Sequence[Pod]) -> GroupVictims:
        """Whom the group would preempt."""
        search = GroupPreemption(self.engine, self.cluster, self._placer)
        return search.search(group, [Member(pod, CycleState()) for pod in pods])

    def domains(self, group: PodGroup, pods: Sequence[Pod], lacking: Lacking) -> list[DomainTrial]:
        """How many of the pods fit in each domain, though they may be too few for the group; most first, then by name.

        One without a name, all nodes, if the group may be anywhere.
        """
        lenient = with_policy(group, SchedulingPolicy(basic=Chosen()))
        found = [self._in_domain(lenient, pods, placement, lacking) for placement in self._placements(group)]
        return sorted(found, key=lambda one: (-one.fits, one.name))

    def _placements(self, group: PodGroup) -> Iterable[Placement | None]:
        if not group.topology_key or not self.engine.profile.placement_generate:
            return [None]
        try:
            return self.engine.runner.placements(CycleState(), group)
        except PluginError:
            return []

    def _in_domain(
        self, group: PodGroup, pods: Sequence[Pod], placement: Placement | None, lacking: Lacking
    ) -> DomainTrial:
        within = None if placement is None else placement.rows
        members = [Member(pod, CycleState()) for pod in pods]
        outcome: GroupOutcome = self._placer.place_within(group, members, within)
        try:
            without = [member.pod for member in members if member.assumed is None]
            count = len(self.engine.nodes) if within is None else int(np.count_nonzero(within))
            name = "" if placement is None else placement.name
            return DomainTrial(name, count, len(outcome.placed), lacking(without, within))
        finally:
            self._placer.give_back(outcome.placed)

    @contextmanager
    def nodes(self, *nodes: Node) -> Iterator[None]:
        """Within this, there are these nodes, or they look like this."""
        before = [self.cluster.node(node.name) for node in nodes]
        for node in nodes:
            self.cluster.put_node(node)
        try:
            yield
        finally:
            for node, old in zip(reversed(nodes), reversed(before), strict=True):
                if old is None:
                    self.cluster.remove_node(node.name)
                else:
                    self.cluster.put_node(old)


def with_policy(group: PodGroup, policy: SchedulingPolicy) -> PodGroup:
    changed: PodGroup = replace(group, spec=replace(group.spec, scheduling_policy=policy))
    return changed


def with_min_count(group: PodGroup, count: int) -> PodGroup:
    return with_policy(group, SchedulingPolicy(gang=GangPolicy(count)))


def anywhere(group: PodGroup) -> PodGroup:
    """The group without its constraint to one domain."""
    changed: PodGroup = replace(group, spec=replace(group.spec, scheduling_constraints=None))
    return changed


def with_priority(group: PodGroup, priority: int) -> PodGroup:
    changed: PodGroup = replace(group, spec=replace(group.spec, priority=priority))
    return changed


def imagined(like: Pod, count: int) -> list[Pod]:
    """So many pods that do not exist yet, equal to one that does."""
    return [
        msgspec.structs.replace(like, name=f"{like.name}-(another-{number})", uid=f"{like.uid}/another-{number}")
        for number in range(1, count + 1)
    ]
