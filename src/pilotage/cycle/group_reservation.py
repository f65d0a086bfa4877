"""Reservations: room that is kept for a gang which other pods would keep out for ever.

A group waits for room for all of its members at once; a pod that needs little takes whatever becomes free before. A
gang that has waited for so long, although it would fit if the pods of at most its own priority were gone, gets a
reservation: its members are nominated to nodes, as if it had preempted there, but no pod is evicted. Pods that are no
more important do not get in there any more; what runs there ends in its own time, and then the gang starts.

    waits -- `after` --> reserved -- it fits --> starts
                            |
                            +-- `lasts` --> waits on, and as long as that no group has a reservation

At any time one group has a reservation. It is nothing that a group needs to start: it may do so anywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct

from pilotage.api.state import CycleState
from pilotage.api.table import Rows
from pilotage.cluster.state import Cluster
from pilotage.cycle.group_placement import GroupOutcome, GroupPlacer, Member
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup

_STAYING: Final = frozenset({"DaemonSet", "Node"})
"""What controls pods that never leave their node."""
_ENDING: Final = frozenset({"Job"})
"""What controls pods that end by themselves."""


@dataclass(frozen=True, slots=True)
class ReservationSettings:
    after_seconds: float = 300.0
    """How long a gang has to wait in vain; 0: no gang ever gets a reservation."""
    lasts_seconds: float = 600.0


class GroupReservation(Struct, frozen=True):
    """The nodes that are kept for members of a group."""

    group_uid: str
    until: float
    nodes: Mapping[str, str]
    """By UID of the member."""


class GroupReservations:
    """Who has the reservation, and whose turn it is."""

    def __init__(self, settings: ReservationSettings) -> None:
        self._settings = settings
        self._held: GroupReservation | None = None
        self._rests_until = 0.0

    def held_by(self, group: PodGroup, now: float) -> GroupReservation | None:
        """What is kept for the group, as long as it lasts."""
        held = self._held
        return held if held is not None and held.group_uid == group.uid and now < held.until else None

    def is_due(self, waited: float, now: float) -> bool:
        """Whether a gang that has waited for so long may have one now."""
        after = self._settings.after_seconds
        return 0 < after <= waited and now >= self._rests_until

    def hold(self, group: PodGroup, nodes: Mapping[str, str], now: float) -> GroupReservation:
        """From now on these nodes are kept for the group."""
        lasts = self._settings.lasts_seconds
        self._held = held = GroupReservation(group.uid, now + lasts, nodes)
        self._rests_until = now + 2 * lasts
        return held

    def end(self, group: PodGroup) -> GroupReservation | None:
        """Its time is over; returns what was kept."""
        held = self._held
        if held is None or held.group_uid != group.uid:
            return None
        self._held = None
        return held

    def give_up(self, group: PodGroup) -> None:
        """It has started, or what was kept is lost: the next one may follow at once."""
        if self.end(group) is not None:
            self._rests_until = 0.0


def nodes_to_keep(
    cluster: Cluster, placer: GroupPlacer, group: PodGroup, members: Sequence[Member], wanted: int
) -> dict[str, str]:
    """Nodes for as many members as are wanted, on which least has to end first; none if the gang would not fit at all.

    Tried on columns from which all pods of at most the group's priority are imagined away, but for those that never
    leave: first on the nodes with the fewest such pods, then on twice as many, and so on.
    """
    with cluster.nodes.without_lower(group.priority + 1) as gone:
        for pods in gone.values():
            for pod in pods.values():
                if pod.priority <= group.priority and _kind_of_controller(pod) in _STAYING:
                    cluster.nodes.add_pod(pod.node_name, pod)
        if group.topology_key:
            return _places(placer, placer.place(group, _anew(members)), wanted)
        rows, size = _soonest_free(cluster, gone), 1
        while True:
            within = np.zeros(len(rows), dtype=np.bool_)
            within[rows[:size]] = True
            places = _places(placer, placer.place_within(group, _anew(members), within), wanted)
            if places or size >= len(rows):
                return places
            size *= 2


def _anew(members: Sequence[Member]) -> list[Member]:
    return [Member(member.pod, CycleState(), member.council) for member in members]


def _places(placer: GroupPlacer, outcome: GroupOutcome, wanted: int) -> dict[str, str]:
    places = {member.pod.uid: member.assumed.node_name for member in outcome.placed if member.assumed is not None}
    placer.give_back(outcome.placed)
    return dict(list(places.items())[:wanted]) if len(places) >= wanted else {}


def _soonest_free(cluster: Cluster, gone: Mapping[int, Mapping[str, Pod]]) -> Rows:
    """All rows: those with the fewest pods first that do not end by themselves, then those with the fewest pods."""
    endless = np.zeros(len(cluster.nodes), dtype=np.int64)
    for row, pods in gone.items():
        endless[row] = sum(_kind_of_controller(pod) not in _ENDING for pod in pods.values())
    rows: Rows = np.lexsort((cluster.nodes.pod_count, endless))
    return rows


def _kind_of_controller(pod: Pod) -> str:
    controller = pod.controller
    return "" if controller is None else controller.kind
