"""A signed score over two resources in columns only: changed nodes are asked about as a table of a few rows."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pilotage.api import CycleState, NodeTable, Plugin, Scores, VectorScore
from pilotage.model import Pod, non_zero_requests


class PackedColumns(Plugin, VectorScore):
    """The fuller the better, in the average of cpu and memory."""

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        points = np.zeros(len(nodes), dtype=np.int64)
        for resource, request in zip(("cpu", "memory"), non_zero_requests(pod.spec), strict=True):
            offered = nodes.allocatable(resource)
            taken = nodes.non_zero_requested(resource) + request
            # A node that does not offer the resource gets no points for it.
            points += np.where(offered > 0, 100 * taken // np.maximum(offered, 1), 0)
        return np.minimum(points // 2, 100)

    def sign(self, pod: Pod) -> Hashable:
        return non_zero_requests(pod.spec)
