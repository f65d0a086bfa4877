"""A signed score in one column operation: the cheapest there is."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pilotage.api import CycleState, NodeTable, Plugin, Scores, VectorScore
from pilotage.model import Pod


class FewPods(Plugin, VectorScore):
    """Prefer nodes with few pods."""

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return np.maximum(100 - nodes.pod_count, 0)

    def sign(self, pod: Pod) -> Hashable:
        return ()
