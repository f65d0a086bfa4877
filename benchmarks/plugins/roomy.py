"""A score that does not sign: it is asked about all nodes for every pod, and divides columns of integers."""

from __future__ import annotations

import numpy as np

from pilotage.api import CycleState, NodeTable, Plugin, Scores, VectorScore
from pilotage.model import Pod


class Roomy(Plugin, VectorScore):
    """Prefer nodes with much free memory."""

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return 100 * nodes.free("memory").clip(0) // np.maximum(nodes.allocatable("memory"), 1)
