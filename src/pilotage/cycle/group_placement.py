"""Where the members of a group would go, together.

`place_group` places one member after the other, each on a cluster that has those before it, and stops as soon as too
few are left to make the group's minimum. It holds what it has placed: whoever asked either keeps it or gives it back,
so that nothing of a group that does not fit stays behind. It is synchronous, and nobody sees what is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from pilotage.api.group_members import PodGroups
from pilotage.api.pod_groups import Placement, ProposedPlacement
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, Unplaced, place
from pilotage.framework.diagnosis import Diagnosis, single_node_diagnosis
from pilotage.framework.errors import PluginError
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup

IS_UNSCHEDULABLE = "pod group is unschedulable"
NO_PLACEMENTS = "no feasible placements found"


class Quorum(Struct, frozen=True):
    """How far a group is from its minimum: what the plugin GangScheduling says of a placement."""

    min_count: int
    scheduled: int
    remaining: int

    @property
    def is_reached(self) -> bool:
        return self.scheduled >= self.min_count

    @property
    def is_possible(self) -> bool:
        return self.scheduled + self.remaining >= self.min_count

    @property
    def message(self) -> str:
        if self.is_reached:
            return ""
        state = "is not yet satisfied" if self.is_possible else "cannot be satisfied"
        return f"minCount ({self.min_count}) {state}: {self.scheduled} scheduled, {self.remaining} remaining"


class Member(Struct, eq=False):
    """A member in the cycle of its group, and what became of it."""

    pod: Pod
    state: CycleState
    placed: Placed | None = None
    assumed: Pod | None = None
    """With its node, while it holds its place."""
    nominated: str = ""
    """The node that was kept for it before."""
    diagnosis: Diagnosis | None = None
    """Why no node will do."""
    message: str = ""
    """The same as text; also where there is nothing to diagnose."""
    error: Exception | None = None


class GroupOutcome(Struct, eq=False):
    """How the search for places ended."""

    members: Sequence[Member]
    reasons: list[str] = msgspec.field(default_factory=list)
    """Why the group does not fit; none if it does."""
    error: str = ""
    """What went wrong."""
    name: str = ""
    """Of the placement."""

    @property
    def fits(self) -> bool:
        return not self.reasons and not self.error

    @property
    def message(self) -> str:
        return self.error or ", ".join(filter(None, self.reasons))

    @property
    def placed(self) -> list[Member]:
        return [member for member in self.members if member.assumed is not None]


class GroupPlacer:
    """Places the members of groups of one profile."""

    def __init__(self, engine: ProfileEngine, cluster: Cluster, groups: PodGroups) -> None:
        self._engine = engine
        self._cluster = cluster
        self._groups = groups

    def place(
        self, group: PodGroup, members: Sequence[Member], searched: Callable[[Member], None] = lambda _: None
    ) -> GroupOutcome:
        """As many members as fit, in the best of the placements. Those with a place hold it, if the group fits."""
        generators = self._engine.profile.placement_generate
        if not generators or not group.topology_key:
            return self._place_within(group, members, None, searched)
        state = CycleState()
        try:
            placements = self._engine.runner.placements(state, group)
            if not placements:
                return GroupOutcome(members, [NO_PLACEMENTS])
            return self._place_best(state, group, members, placements, searched)
        except PluginError as error:
            return GroupOutcome(members, error=str(error))

    def _place_best(
        self,
        state: CycleState,
        group: PodGroup,
        members: Sequence[Member],
        placements: Sequence[Placement],
        searched: Callable[[Member], None],
    ) -> GroupOutcome:
        first: GroupOutcome | None = None
        feasible: list[ProposedPlacement] = []
        for placement in placements:
            tried = [Member(member.pod, CycleState(member.state.budget)) for member in members]
            outcome = self._place_within(group, tried, placement.rows, searched)
            first = first or outcome
            if outcome.error:
                return outcome
            if outcome.fits and outcome.placed:
                feasible.append(ProposedPlacement(placement, _by_node(outcome.placed)))
            self.give_back(outcome.placed)
        if not feasible:
            assert first is not None
            count = f"0/{len(placements)} placements are available"
            first.reasons = [IS_UNSCHEDULABLE, f"{count}, first placement status: {first.message}"]
            return first
        best = 0
        if len(feasible) > 1:
            scores = self._engine.runner.score_placements(state, group, feasible)
            best = max(range(len(feasible)), key=lambda at: (int(scores[at]), -at))
        chosen = feasible[best].placement
        outcome = self._place_within(group, members, chosen.rows, lambda _: None)
        outcome.name = chosen.name
        return outcome

    def _place_within(
        self, group: PodGroup, members: Sequence[Member], within: Mask | None, searched: Callable[[Member], None]
    ) -> GroupOutcome:
        outcome = GroupOutcome(members)
        remaining = len(members)
        quorum = self._quorum(group, remaining)
        if not quorum.is_possible:
            outcome.reasons = [IS_UNSCHEDULABLE, quorum.message]
            return outcome
        for member in members:
            self._place(member, within)
            searched(member)
            if member.error is not None:
                outcome.error = f"failed to schedule other pod from a pod group: {member.error}"
                break
            remaining -= 1
            quorum = self._quorum(group, remaining)
            if not quorum.is_possible:
                break
        if not outcome.error and not quorum.is_reached:
            outcome.reasons = [quorum.message]
        if not outcome.fits:
            self.give_back(outcome.placed)
        return outcome

    def _quorum(self, group: PodGroup, remaining: int) -> Quorum:
        return Quorum(group.min_count, len(self._groups.scheduled(group.key)), remaining)

    def _place(self, member: Member, within: Mask | None) -> None:
        pod, state, cluster = member.pod, member.state, self._cluster
        try:
            found = place(self._engine, state, pod, within=within, asks_post_filter=False)
        except NoNodes as error:
            member.message = str(error)
            return
        except Exception as error:
            member.error = error
            return
        if isinstance(found, Unplaced):
            member.diagnosis, member.message = found.diagnosis, found.diagnosis.message()
            return
        assumed = pod.with_node(found.node_name)
        cluster.assume(assumed)
        member.placed, member.assumed = found, assumed
        member.nominated = cluster.nominations.node_of(pod.uid)
        if member.nominated:
            # It counts on its node now; elsewhere nothing is kept for it.
            cluster.nominations.remove(pod.uid)
        try:
            rejected = self._engine.runner.reserve(state, assumed, assumed.node_name)
        except Exception as error:
            member.error = error
            self.give_back([member])
            return
        if rejected is not None:
            self.give_back([member])
            member.placed = None
            member.diagnosis = single_node_diagnosis(rejected.plugin, rejected.rejection, assumed.node_name)
            member.message = member.diagnosis.message()

    def give_back(self, members: Sequence[Member]) -> list[PluginError]:
        """Their places, the last one first; `placed` still says where they would have been."""
        errors: list[PluginError] = []
        for member in reversed(members):
            assumed = member.assumed
            if assumed is not None:
                errors += self._engine.runner.unreserve(member.state, assumed, assumed.node_name)
                self._cluster.forget(assumed.uid)
                member.assumed = None
                if member.nominated:
                    self._cluster.nominations.nominate(member.pod, member.nominated)
        return errors


def _by_node(members: Sequence[Member]) -> dict[str, tuple[Pod, ...]]:
    found: dict[str, tuple[Pod, ...]] = {}
    for member in members:
        if member.placed is not None:
            name = member.placed.node_name
            found[name] = (*found.get(name, ()), member.pod)
    return found
