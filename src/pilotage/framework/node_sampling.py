"""Looking at a part of the nodes only, for those who ask for it: `percentageOfNodesToScore`.

All nodes are evaluated unless a configuration says otherwise, because columns make that cheap. A profile with a
percentage takes the first so many feasible nodes of a walk over all nodes, as kube-scheduler does, and the next walk
begins where this one ended: pods spread over the cluster although no walk has seen all of it. A profile without scores
needs one feasible node, unless an extender may reject it. There is one walk for all profiles of a scheduler.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pilotage.api.state import StateKey
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.profile import Profile
from pilotage.framework.shared_columns import HEAP, Ties

FOUND: Final = StateKey[Rows]("framework/nodes found")
"""The feasible rows in the order in which the walk came to them; not there if all nodes were looked at."""

_FEWEST_TO_FIND: Final = 100


def number_to_find(node_count: int, percentage: int, *, has_scores: bool) -> int:
    """How many feasible nodes are enough."""
    if not has_scores:
        return 1
    if node_count < _FEWEST_TO_FIND or percentage in (0, 100):
        return node_count
    return max(node_count * percentage // 100, _FEWEST_TO_FIND)


class NodeSampling:
    """Where the next walk over the nodes begins."""

    def __init__(self, nodes: ClusterNodeTable, *, is_filtered_by_extenders: bool = False, ties: Ties = HEAP) -> None:
        self.ties = ties
        """Which of equally good nodes is taken."""
        self._nodes = nodes
        self._is_filtered = is_filtered_by_extenders
        self.start = 0

    def is_for(self, profile: Profile) -> bool:
        """Whether this profile looks at a part of the nodes only."""
        return not (profile.scores or self._is_filtered) or 0 < profile.percentage_of_nodes_to_score < 100

    def find(self, profile: Profile, feasible: Mask, allowed: Mask | None) -> Rows:
        """The first feasible rows of a walk, as many as the profile wants; moves the start."""
        order = self._nodes.order
        if allowed is not None:
            order = order[allowed[order]]
        if not len(order):
            return order
        order = np.roll(order, -(self.start % len(order)))
        is_choosy = bool(profile.scores) or self._is_filtered
        enough = number_to_find(len(order), profile.percentage_of_nodes_to_score, has_scores=is_choosy)
        places = np.flatnonzero(feasible[order])[:enough]
        seen = int(places[-1]) + 1 if len(places) == enough else len(order)
        self.start = (self.start + seen) % len(self._nodes)
        return order[places]
