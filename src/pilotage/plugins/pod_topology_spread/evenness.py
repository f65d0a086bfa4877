"""The score's state: how many like pods each domain has, weighed by the number of domains.

Fewer like pods are better. Domains of a key with many values (hosts) weigh more than those of a key with few (zones),
logarithmically, so that a difference of one pod matters alike. For the hostname the node itself is the domain.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pilotage.api import Mask, NodeTable, NodeView, Scores
from pilotage.plugins.normalize import MAX_SCORE
from pilotage.plugins.pod_topology_spread.constraints import HOSTNAME, Constraints
from pilotage.plugins.pod_topology_spread.domains import MISSING
from pilotage.plugins.pod_topology_spread.layouts import Layout

PodCounts = list[Scores | None]
"""For each constraint the counted pods per node; None stands for none."""


class Evenness:
    """Scores nodes for the soft constraints of one pod."""

    __slots__ = ("_constraints", "_ignored", "_layout", "_pods", "_sums", "_weights")

    def __init__(
        self, constraints: Constraints, layout: Layout, pods: PodCounts, feasible: NodeTable, *, requires_all_keys: bool
    ) -> None:
        self._constraints = constraints
        self._layout = layout
        self._pods = pods
        self._ignored = _ignored(layout, feasible) if requires_all_keys else None
        self._sums = [
            None if constraint.topology_key == HOSTNAME else layout.counting[at].sums(pods[at])
            for at, constraint in enumerate(constraints)
        ]
        self._weights = [math.log(self._size(at, feasible) + 2) for at in range(len(constraints))]

    def _size(self, at: int, feasible: NodeTable) -> int:
        """In how many domains the feasible nodes are, those that are ignored apart."""
        if self._constraints[at].topology_key == HOSTNAME:
            return len(feasible) - (0 if self._ignored is None else int(np.count_nonzero(self._ignored)))
        slots = feasible.pick(self._layout.groups[at])
        present = np.zeros(self._layout.counting[at].size, dtype=np.bool_)
        present[slots if self._ignored is None else slots[~self._ignored]] = True
        return int(np.count_nonzero(present))

    def score(self, node: NodeView) -> int:
        """The raw score of one node: the smaller, the better."""
        labels = node.labels
        if self._ignored is not None and any(c.topology_key not in labels for c in self._constraints):
            return 0
        score = 0.0
        for at, constraint in enumerate(self._constraints):
            value = labels.get(constraint.topology_key)
            if value is not None:
                count = self._count(at, value, node)
                score += count * self._weights[at] + (constraint.max_skew - 1)
        return math.floor(score) + (score - math.floor(score) >= 0.5)

    def _count(self, at: int, value: str, node: NodeView) -> int:
        sums, slot = self._sums[at], self._layout.domains[at].slot(value)
        if sums is None:
            census = self._constraints[at].census
            return 0 if census is None else census.count(node.pods)
        return 0 if slot is None else int(sums[slot])

    def score_all(self, nodes: NodeTable) -> Scores:
        """The raw scores of the feasible nodes."""
        score = np.zeros(len(nodes), dtype=np.float64)
        for at in range(len(self._constraints)):
            score += self._share(at, nodes)
        whole = np.floor(score)
        # Halves are rounded up, as in Go; NumPy's rounding would go to the even neighbour.
        rounded = (whole + (score - whole >= 0.5)).astype(np.int64)
        if self._ignored is not None:
            rounded[self._ignored] = 0
        return rounded

    def _share(self, at: int, nodes: NodeTable) -> NDArray[np.float64]:
        """What one constraint adds to the score of each node."""
        constraint, weight = self._constraints[at], self._weights[at]
        offset = float(constraint.max_skew - 1)
        domains, sums = self._layout.domains[at], self._sums[at]
        if sums is None:
            pods = self._pods[at]
            share = np.full(len(nodes), offset) if pods is None else nodes.pick(pods) * weight + offset
            return share if domains.is_complete else np.where(domains.slots_of(nodes) == MISSING, 0.0, share)
        by_domain = np.append(sums[: len(domains)] * weight + offset, 0.0)
        return by_domain[domains.slots_of(nodes)]

    def normalized(self, scores: Scores) -> Scores:
        """0 to 100, where the node with the fewest like pods around gets most; ignored nodes get nothing."""
        rated = scores if self._ignored is None else scores[~self._ignored]
        if not len(rated):
            return np.zeros_like(scores)
        lowest, highest = int(rated.min()), max(int(rated.max()), 0)
        result = np.full_like(scores, MAX_SCORE) if highest == 0 else MAX_SCORE * (highest + lowest - scores) // highest
        if self._ignored is not None:
            result[self._ignored] = 0
        return result


def _ignored(layout: Layout, feasible: NodeTable) -> Mask | None:
    """Feasible nodes that lack a topology key; None if there are none."""
    if layout.complete is None:
        return None
    ignored: Mask = ~feasible.pick(layout.complete)
    return ignored if ignored.any() else None
