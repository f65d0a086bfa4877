"""All reasons of one plugin against each of many nodes, put together node by node.

A plugin that is written in columns says one reason at a time, with the nodes it holds for. Nodes that were rejected
for the same reasons so far are one group; a further reason splits the groups that it holds for a part of. A group
knows the group that it came from and the reason that was added, so that nothing is copied on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pilotage.api.results import Pending, Reason, Reject, Rejection
from pilotage.api.table import Mask

MOST_REASONS: Final = 100
"""So many reasons of one plugin are given for one node; the others are counted."""

_NONE: Final = -1


class _Group(NamedTuple):
    parent: int
    reason: Reason
    is_pending: bool
    size: int


class CombinedReasons:
    """The groups of nodes, after each reason."""

    __slots__ = ("_group_of", "_groups")

    def __init__(self, size: int) -> None:
        self._group_of: NDArray[np.int32] = np.full(size, _NONE, dtype=np.int32)
        self._groups: list[_Group] = []

    def add(self, found: Mask, reason: Reason, is_pending: bool) -> None:
        """One reason more for these nodes."""
        members = self._group_of[found]
        if not len(members):
            return
        for parent in np.unique(members).tolist():
            size = 1 if parent == _NONE else self._groups[parent].size + 1
            members[members == parent] = -2 - len(self._groups)
            self._groups.append(_Group(parent, reason, is_pending, size))
        self._group_of[found] = -2 - members

    def rejections(self) -> Iterator[tuple[Rejection, Mask]]:
        """What is said in the end, and of which nodes."""
        for number in np.unique(self._group_of[self._group_of != _NONE]).tolist():
            kind = Pending if self._groups[number].is_pending else Reject
            yield kind(*capped(self._reasons(number))), self._group_of == number

    def _reasons(self, number: int) -> list[Reason]:
        reasons = []
        while number != _NONE:
            group = self._groups[number]
            reasons.append(group.reason)
            number = group.parent
        reasons.reverse()
        return reasons


def capped(reasons: list[Reason]) -> list[Reason]:
    """The first of many reasons, and how many there are besides."""
    if len(reasons) <= MOST_REASONS:
        return reasons
    others = reasons[MOST_REASONS:]
    unresolvable = any(reason.unresolvable for reason in others)
    return [*reasons[:MOST_REASONS], Reason("MoreReasons", f"{len(others)} more reasons", unresolvable=unresolvable)]
