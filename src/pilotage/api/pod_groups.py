"""What plugins see of pod groups: sets of nodes that could take a whole group, and what preemption would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup


class Placement(Struct, frozen=True, eq=False):
    """A set of nodes that could take a group: a rack, a zone, all of them."""

    name: str
    rows: Mask
    """True for each row of the node table that belongs to it."""


class ProposedPlacement(Struct, frozen=True, eq=False):
    """A placement in which the group fits."""

    placement: Placement
    members: Mapping[str, tuple[Pod, ...]]
    """By node name: the members that would go there."""

    @property
    def member_count(self) -> int:
        return sum(map(len, self.members.values()))


class GroupVictims(Struct, frozen=True):
    """How a group would fit if others went."""

    victims: tuple[Pod, ...] = ()
    """The most important first."""
    places: tuple[tuple[Pod, str], ...] = ()
    """Members and the nodes where they would be."""
    message: str = ""
    """Why it would not fit in any case; "" if it would."""
    violations: int = 0
    """How many of the victims a disruption budget would protect."""


class GroupAttempt(Protocol):
    """A group that does not fit."""

    @property
    def group(self) -> PodGroup: ...

    @property
    def pods(self) -> Sequence[Pod]:
        """The members that were to be placed."""

    @property
    def states(self) -> Sequence[CycleState]:
        """What plugins keep of each of these members during the attempt; empty if its turn did not come."""

    def search_victims(self) -> GroupVictims:
        """Who of lower priority would have to go so that the group fits; changes nothing."""


class NominateMembers(Struct, frozen=True):
    """From PodGroupPostFilter: the group will fit when its victims are gone."""

    nodes: Mapping[str, str]
    """By UID of the member its nominated node; members that are not in here keep theirs."""
    message: str = ""
