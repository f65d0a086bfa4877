"""Points that kube-scheduler's plugins serve to prepare something, where columns leave nothing to prepare.

They are served all the same: a configuration may name the plugin at each of its points, in an order of its own, and
has to be read as it is.
"""

from __future__ import annotations

from pilotage.api import CycleState, NodeTable, PreFilter, PreScore
from pilotage.model import Pod


class NothingBeforeFilter(PreFilter):
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        return None


class NothingBeforeScore(PreScore):
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        return None
