"""Room for the members of a group, made on one node after the other, at the least cost that can be seen from there.

With all pods of lower priority imagined away a group goes where it scores best, whoever is there. Here they stay, and a
member takes what is free. Only for one that has no place a node is cleared: one without pods under a used-up disruption
budget before others, of the least important pods before more important ones, and where the fewest would have to go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pilotage.api.table import Mask, Rows, Scores
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cycle.group_placement import Member
from pilotage.framework.preemption.units import Unit, VictimUnits
from pilotage.model import Pod, PodSpec
from pilotage.model.pod_resources import pod_requests

_MOST_LEVELS: Final = 4
"""So many steps between the least important pods and all that may go: each costs columns of its own."""
_MOST_IN_VAIN: Final = 32
"""Nodes that are cleared for nothing; then the search has lost its way."""
_FORBIDDING: Final = 1e9
"""Added to the cost of a node where a budget would be violated."""


class Floor(Protocol):
    """Where pods are taken off and brought back."""

    def take(self, pod: Pod) -> None: ...

    def put_back(self, pod: Pod) -> None: ...


class _Cleared(Struct, frozen=True):
    """A node from which pods were taken for a member."""

    uid: str
    units: list[Unit]


class RoomMaker:
    """Clears nodes for the members of one group; what is `gone` has to be brought back by the caller."""

    def __init__(
        self, nodes: ClusterNodeTable, units: VictimUnits, priority: int, pods: Sequence[Pod], floor: Floor
    ) -> None:
        """`pods` are all that may go, all below this priority; `floor` is where they are."""
        self._nodes = nodes
        self._units = units
        self._floor = floor
        self._may_go = {pod.uid for pod in pods}
        self._levels = _levels({pod.priority for pod in pods}, priority)
        self._forbidding = self._budget_costs(pods, priority)
        self._tried: dict[PodSpec, set[tuple[int, int]]] = {}
        """For members of a spec: levels and rows that were cleared for one."""
        self._last: _Cleared | None = None
        self._in_vain = 0
        self.gone: list[Unit] = []

    def make(self, member: Member) -> bool:
        """Clear a node for a member without a place; False if there is none that may help."""
        if self._last is not None and self._last.uid == member.pod.uid:
            self._take_back(self._last)
        if member.diagnosis is None or self._in_vain >= _MOST_IN_VAIN:
            return False
        rows = self._rows_of(member)
        for level in self._levels:
            row = self._cheapest(member.pod, level, rows)
            if row is not None:
                self._tried.setdefault(member.pod.spec, set()).add((level, row))
                self._clear(member.pod, level, row)
                return True
        return False

    def _rows_of(self, member: Member) -> Rows:
        """Where evicting pods may help."""
        assert member.diagnosis is not None
        names = member.diagnosis.node_names
        found = member.diagnosis.resolvable_rows()
        if len(names) == len(self._nodes):
            return found
        rows = (self._nodes.row(names[at]) for at in found.tolist())
        return np.array([row for row in rows if row is not None], dtype=np.int64)

    def _cheapest(self, pod: Pod, level: int, rows: Rows) -> int | None:
        lower, size = self._nodes.below(level), len(self._nodes)
        count = lower.count.values(size)[rows]
        possible: Mask = count > 0
        needed: NDArray[np.float64] = np.maximum(1, self._nodes.pod_count[rows] + 1 - self._amount("pods", rows))
        for resource, amount in pod_requests(pod.spec).items():
            if amount > 0 and self._nodes.is_offered(resource):
                short = amount - self._nodes.free(resource)[rows]
                held = np.broadcast_to(lower.requested(resource, size), (size,))[rows]
                possible &= short <= held
                # As if all of them took the same.
                needed = np.maximum(needed, np.ceil(short * count / np.maximum(held, 1)))
        tried = [row for known, row in self._tried.get(pod.spec, ()) if known == level]
        possible &= ~np.isin(rows, tried)
        if not possible.any():
            return None
        cost = np.where(possible, needed + self._forbidding[rows], np.inf)
        return int(rows[int(cost.argmin())])

    def _amount(self, resource: str, rows: Rows) -> Scores:
        found: Scores = self._nodes.allocatable(resource)[rows]
        return found

    def _clear(self, pod: Pod, level: int, row: int) -> None:
        pods = [pod for uid, pod in self._nodes.pods_on(row).items() if uid in self._may_go]
        units = self._units.below(pods, level)
        for unit in units:
            for victim in unit.pods:
                self._floor.take(victim)
        self.gone += units
        self._last = _Cleared(pod.uid, units)

    def _take_back(self, cleared: _Cleared) -> None:
        """It did not help."""
        for unit in cleared.units:
            for pod in unit.pods:
                self._floor.put_back(pod)
        self.gone = self.gone[: len(self.gone) - len(cleared.units)]
        self._last = None
        self._in_vain += 1

    def _budget_costs(self, pods: Sequence[Pod], priority: int) -> NDArray[np.float64]:
        costs = np.zeros(len(self._nodes))
        if self._units.budgets.concern(pods):
            units = sorted(self._units.below(pods, priority), key=lambda unit: unit.importance)
            protected = self._units.budgets.protected([pod for unit in units for pod in unit.pods])
            rows = {self._nodes.row(pod.node_name) for pod in pods if pod.uid in protected}
            costs[[row for row in rows if row is not None]] = _FORBIDDING
        return costs


def _levels(priorities: set[int], limit: int) -> list[int]:
    """Limits below which pods go, the lowest first; the last one is that of all."""
    found = [*(priority + 1 for priority in sorted(priorities)[:-1]), limit]
    places = np.linspace(0, len(found) - 1, min(len(found), _MOST_LEVELS)).astype(int)
    return [found[place] for place in places.tolist()]
