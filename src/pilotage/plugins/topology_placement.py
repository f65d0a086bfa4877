"""TopologyPlacementGenerator and PodGroupPodsCount: a group that must stay within one rack, block or zone.

The group's constraint names a label of nodes; every value of it is a placement, all nodes that have it. Once members
run, their value is the only one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.api import (
    CycleState,
    Handle,
    NodeTable,
    Placement,
    PlacementGenerate,
    Plugin,
    ProposedPlacement,
    Scores,
    VectorPlacementScore,
)
from pilotage.api.group_members import PodGroups
from pilotage.model.pod_group import PodGroup

_UNKNOWN = "cannot determine domain for already scheduled pods"


class TopologyPlacementGenerator(Plugin, PlacementGenerate):
    name = "TopologyPlacementGenerator"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._groups = handle.index(PodGroups)

    def generate_placements(self, state: CycleState, group: PodGroup, nodes: NodeTable) -> list[Placement]:
        key = group.topology_key
        if not key:
            return [Placement("", nodes.everywhere(True))]
        codes, values = nodes.labels(key)
        present = sorted((values[code], code) for code in np.unique(codes).tolist() if code >= 0)
        domain = self._domain(group, key)
        return [Placement(value, codes == code) for value, code in present if domain is None or value == domain]

    def _domain(self, group: PodGroup, key: str) -> str | None:
        """Where the members that run already are; None if there are none."""
        domains: set[str] = set()
        for pod in self._groups.scheduled(group.key).values():
            node = self._handle.node(pod.node_name)
            if node is None:
                raise LookupError(f"{_UNKNOWN}: getting node for pod {pod.key}: there is no node {pod.node_name}")
            value = node.node.labels.get(key)
            if value is None:
                raise LookupError(f"{_UNKNOWN}: no topology domain found for pod {pod.key}")
            domains.add(value)
        if len(domains) > 1:
            raise LookupError(f"{_UNKNOWN}: more than 1 domain found for pod group: {', '.join(sorted(domains))}")
        return next(iter(domains), None)


class PodGroupPodsCount(Plugin, VectorPlacementScore):
    """Prefers the placement that takes the most members."""

    name = "PodGroupPodsCount"

    def __init__(self, handle: Handle) -> None:
        self._groups = handle.index(PodGroups)

    def score_placements(
        self, state: CycleState, group: PodGroup, proposed: Sequence[ProposedPlacement], nodes: NodeTable
    ) -> Scores:
        running = len(self._groups.scheduled(group.key))
        counts = np.array([running + one.member_count for one in proposed], dtype=np.int64)
        most = int(counts.max(initial=0))
        if not most:
            raise ValueError("no pods from pod group are assigned to any of the candidate placements")
        scores: Scores = counts * 100 // most
        return scores
