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

Floats = NDArray[np.float64]
PodCounts = list[Scores | None]
"""For each constraint the counted pods per node; None stands for none."""


class NoEvenness:
    """Scores nodes when none of them has all topology keys: all are ignored."""

    def score(self, node: NodeView) -> int:
        return 0

    def score_all(self, nodes: NodeTable) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    def normalized(self, scores: Scores) -> Scores:
        return np.zeros_like(scores)


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
        if self._ignored is None and slots is self._layout.groups[at]:
            return self._layout.counting[at].size
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
        first = self._sums[0]
        if len(self._sums) == 1 and first is not None:
            # All nodes of a domain score alike, so the arithmetic is done on the few domains.
            scores = _rounded(self._by_domain(0, first)).take(self._layout.domains[0].slots_of(nodes))
        else:
            shares = [self._share(at, nodes) for at in range(len(self._sums))]
            scores = _rounded(sum(shares[1:], start=shares[0]))
        if self._ignored is not None:
            scores[self._ignored] = 0
        return scores

    def _share(self, at: int, nodes: NodeTable) -> Floats:
        """What one constraint adds to the score of each node."""
        domains, sums = self._layout.domains[at], self._sums[at]
        if sums is not None:
            return self._by_domain(at, sums).take(domains.slots_of(nodes))
        pods, offset = self._pods[at], float(self._constraints[at].max_skew - 1)
        share = np.full(len(nodes), offset) if pods is None else nodes.pick(pods) * self._weights[at] + offset
        return share if domains.is_complete else np.where(domains.slots_of(nodes) == MISSING, 0.0, share)

    def _by_domain(self, at: int, sums: Scores) -> Floats:
        """What one constraint adds to the score, for each domain; last, for nodes that are in none."""
        count = len(self._layout.domains[at])
        shares = np.zeros(count + 1, dtype=np.float64)
        shares[:count] = sums[:count] * self._weights[at] + (self._constraints[at].max_skew - 1)
        return shares

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


def _rounded(scores: Floats) -> Scores:
    """Halves are rounded up, as in Go; NumPy's own rounding would go to the even neighbour."""
    whole = np.floor(scores)
    return (whole + (scores - whole >= 0.5)).astype(np.int64)
