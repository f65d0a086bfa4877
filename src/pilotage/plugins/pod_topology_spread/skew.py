"""The filter's state: pods per domain for each hard constraint, and which domains have too many.

A domain is rejected if the pod would make it have more than `max_skew` pods more than the emptiest domain. Dry runs
change the counts of single domains in a clone; arrays are never written to, so that clones may share them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pilotage.api import Mask, NodeView, Scores
from pilotage.model import Pod
from pilotage.plugins.node_selection import node_matches
from pilotage.plugins.pod_topology_spread.constraints import Constraints, SpreadConstraint
from pilotage.plugins.pod_topology_spread.layouts import NOWHERE, Layout
from pilotage.plugins.tolerations import first_untolerated

_NO_DOMAIN = 2**31 - 1
"""What kube-scheduler takes for the smallest count when there is no domain at all: nothing is rejected then."""


class Skew:
    """Counts per constraint and domain."""

    __slots__ = ("_counts", "_lowest", "constraints", "layout")

    def __init__(self, constraints: Constraints, layout: Layout, counts: list[Scores]) -> None:
        self.constraints = constraints
        self.layout = layout
        self._counts = counts
        self._lowest: list[int | None] = [None] * len(counts)

    @property
    def is_nowhere(self) -> bool:
        """No node has all topology keys: every node lacks one."""
        return self.layout is NOWHERE

    def clone(self) -> Skew:
        copy = Skew(self.constraints, self.layout, list(self._counts))
        copy._lowest = list(self._lowest)
        return copy

    def excess(self, at: int) -> Mask:
        """The domains of a constraint that must not get the pod."""
        constraint = self.constraints[at]
        limit = constraint.max_skew + self._minimum(at) - constraint.self_match
        too_many: Mask = self._counts[at] > limit
        return too_many

    def exceeds(self, at: int, value: str) -> bool:
        """The same for one domain."""
        constraint = self.constraints[at]
        slot = self.layout.domains[at].slot(value)
        count = 0 if slot is None else int(self._counts[at][slot])
        return count + constraint.self_match - self._minimum(at) > constraint.max_skew

    def has_all_keys(self, labels: Mapping[str, str]) -> bool:
        return not self.is_nowhere and self.constraints.keys <= labels.keys()

    def change(self, pod: Pod, other: Pod, node: NodeView, delta: int) -> None:
        """As if `other` came to (+1) or went from (-1) a node."""
        if other.namespace != pod.namespace or not self.has_all_keys(node.labels):
            return
        for at, constraint in enumerate(self.constraints):
            slot = self.layout.domains[at].slot(node.labels[constraint.topology_key])
            if slot is None or not constraint.matches(other.labels) or not _counts_node(constraint, pod, node):
                continue
            counts = self._counts[at].copy()
            counts[slot] += delta
            self._counts[at] = counts
            self._lowest[at] = None

    def _minimum(self, at: int) -> int:
        """The count that the others are compared with."""
        lowest = self._lowest[at]
        if lowest is None:
            lowest = self._lowest[at] = self._find_minimum(at)
        return lowest

    def _find_minimum(self, at: int) -> int:
        counting = self.layout.counting[at]
        if counting.known_count < self.constraints[at].min_domains:
            return 0
        lowest = counting.lowest(self._counts[at])
        return _NO_DOMAIN if lowest is None else lowest


def _counts_node(constraint: SpreadConstraint, pod: Pod, node: NodeView) -> bool:
    """Whether the constraint's policies include the node."""
    if constraint.honors_affinity and not node_matches(pod, node.node):
        return False
    return not constraint.honors_taints or first_untolerated(node.taints, pod.spec) is None


def spread_over(mask: Mask, slots: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Mask:
    """A verdict per domain as a verdict per node; False for nodes in no domain."""
    return np.append(mask, False)[slots]
