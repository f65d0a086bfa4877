"""Placement of the members of a pod group, together.

`GroupPlacer` places one member after the other, each on a cluster that has those before it, and stops as soon as too
few are left to make the group's minimum. It holds what it has placed: the caller either keeps it or gives it back,
so that nothing of a group that does not fit stays behind. It is synchronous, and no one sees what is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec
from msgspec import Struct

from pilotage.api.budget import BudgetExceeded
from pilotage.api.group_members import PodGroups
from pilotage.api.pod_groups import Placement, ProposedPlacement
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.state import Cluster
from pilotage.cycle.advised_placement import Council, place_member
from pilotage.cycle.attempts import Attempts
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, Unplaced
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
    council: Council | None = None
    """What extenders have said of it, if any are interested."""
    placed: Placed | None = None
    assumed: Pod | None = None
    """With its node, while it holds its place."""
    nominated: str = ""
    """The node that was kept for it before."""
    diagnosis: Diagnosis | None = None
    """Why no node will do."""
    message: str = ""
    """The same as text; also where there is nothing to diagnose."""
    error: Exception | BudgetExceeded | None = None

    def begin_again(self) -> None:
        """The cluster is another one now."""
        self.state = CycleState(self.state.budget)
        self.diagnosis, self.message = None, ""


OnSearched = Callable[[Member], None]
MakeRoom = Callable[[Member], bool]
"""Asked about a member that has no place: whether it is worth another search."""


def nothing_to_report(member: Member) -> None:
    """The search is a dry run: it is not counted."""


def there_is_none(member: Member) -> bool:
    """No room is made."""
    return False


class GroupOutcome(Struct, eq=False):
    """How the search for places ended."""

    members: Sequence[Member]
    reasons: list[str] = msgspec.field(default_factory=list)
    """Why the group does not fit; none if it does."""
    error: str = ""
    """What went wrong."""
    name: str = ""
    """Of the placement."""
    within: Mask | None = None
    """Its rows; None: all."""

    @property
    def fits(self) -> bool:
        return not self.reasons and not self.error

    @property
    def message(self) -> str:
        return self.error or ", ".join(filter(None, self.reasons))

    @property
    def placed(self) -> list[Member]:
        return [member for member in self.members if member.assumed is not None]


class MemberGuard(Protocol):
    """Called before each member is placed; `CycleGuard` is one."""

    def begin_member(self, pod: Pod) -> None: ...


class GroupPlacer:
    """Places the members of groups of one profile."""

    def __init__(
        self, engine: ProfileEngine, cluster: Cluster, guard: MemberGuard, attempts: Attempts | None = None
    ) -> None:
        """`guard` gives every member the CPU time that it may take; `attempts` counts what is tried."""
        self._engine = engine
        self._cluster = cluster
        self._groups = cluster.index(PodGroups)
        self._guard = guard
        self._attempts = attempts
        self._profile = engine.profile.scheduler_name

    def place(
        self, group: PodGroup, members: Sequence[Member], searched: OnSearched = nothing_to_report
    ) -> GroupOutcome:
        """As many members as fit, in the best of the placements. Those with a place hold it, if the group fits.

        Whatever is raised, no member holds a place then.
        """
        generators = self._engine.profile.placement_generate
        if not generators:
            return self.place_within(group, members, None, searched)
        if not group.topology_key:
            self._count_placements(1)
            return self._evaluated(group, members, None, searched)
        state = CycleState()
        try:
            with self._asking("PlacementGenerate"):
                placements = self._engine.runner.placements(state, group)
            self._count_placements(len(placements))
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
        searched: OnSearched,
    ) -> GroupOutcome:
        first: GroupOutcome | None = None
        feasible: list[ProposedPlacement] = []
        for placement in placements:
            tried = [Member(member.pod, CycleState(member.state.budget), member.council) for member in members]
            outcome = self._evaluated(group, tried, placement.rows, searched)
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
            with self._asking("PlacementScore"):
                scores = self._engine.runner.score_placements(state, group, feasible)
            best = max(range(len(feasible)), key=lambda at: (int(scores[at]), -at))
        chosen = feasible[best].placement
        outcome = self.place_within(group, members, chosen.rows, nothing_to_report)
        outcome.name, outcome.within = chosen.name, chosen.rows
        return outcome

    def _evaluated(
        self, group: PodGroup, members: Sequence[Member], within: Mask | None, searched: OnSearched
    ) -> GroupOutcome:
        since = 0.0 if self._attempts is None else self._attempts.now()
        outcome = self.place_within(group, members, within, searched)
        if self._attempts is not None:
            self._attempts.placement_evaluated(outcome.fits, self._profile, since)
        return outcome

    def _count_placements(self, count: int) -> None:
        if self._attempts is not None:
            self._attempts.placements_generated(count, self._profile)

    @contextmanager
    def _asking(self, point: str) -> Iterator[None]:
        if self._attempts is None:
            yield
        else:
            with self._attempts.asking_about_group(point, self._profile):
                yield

    def place_within(
        self,
        group: PodGroup,
        members: Sequence[Member],
        within: Mask | None,
        searched: OnSearched = nothing_to_report,
        make_room: MakeRoom = there_is_none,
    ) -> GroupOutcome:
        """The same among these rows (None: all)."""
        outcome = GroupOutcome(members)
        quorum = self._quorum(group, len(members))
        if not quorum.is_possible:
            outcome.reasons = [IS_UNSCHEDULABLE, quorum.message]
            return outcome
        try:
            for number, member in enumerate(members, start=1):
                self._place(member, within)
                while member.diagnosis is not None and make_room(member):
                    member.begin_again()
                    self._place(member, within)
                searched(member)
                if member.error is not None:
                    outcome.error = f"failed to schedule other pod from a pod group: {member.error}"
                    break
                quorum = self._quorum(group, len(members) - number)
                if not quorum.is_possible:
                    break
        except BaseException:
            self.give_back(outcome.placed)
            raise
        if not outcome.error and not quorum.is_reached:
            outcome.reasons = [quorum.message]
        if not outcome.fits:
            self.give_back(outcome.placed)
        return outcome

    def _quorum(self, group: PodGroup, remaining: int) -> Quorum:
        return Quorum(group.min_count, len(self._groups.scheduled(group.key)), remaining)

    def _place(self, member: Member, within: Mask | None) -> None:
        pod, state, cluster = member.pod, member.state, self._cluster
        self._guard.begin_member(pod)
        try:
            found = place_member(self._engine, state, pod, member.council, within)
        except NoNodes as error:
            member.message = str(error)
            return
        except (Exception, BudgetExceeded) as error:
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
        except (Exception, BudgetExceeded) as error:
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
                try:
                    errors += self._engine.runner.unreserve(member.state, assumed, assumed.node_name)
                finally:
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
