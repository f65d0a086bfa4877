"""How many pods in each topology domain are what a question asks for.

`handle.count_pods` keeps the counts per node. Summing them up per domain costs more than everything else that is done
for a pod, so the sums are kept too: between two pods of a workload a node or two have changed, and only those are
carried over. All is summed anew when nodes come, go or move to another domain.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from pilotage.api import ClusterIndex, Handle, Scores
from pilotage.model import Node
from pilotage.plugins.inter_pod_affinity.domains import MISSING, Amounts, sum_by_domain
from pilotage.plugins.inter_pod_affinity.incoming import Question

_KEPT_SUMS = 512
_FEW_NODES = 32


class NodeLabels(ClusterIndex):
    """Counts the changes after which nodes may be in other domains."""

    def __init__(self) -> None:
        self.version = 0

    def node_put(self, old: Node | None, new: Node) -> None:
        if old is None or old.labels != new.labels:
            self.version += 1

    def node_removed(self, node: Node) -> None:
        self.version += 1


class _Sums:
    __slots__ = ("amounts", "per_node", "version")

    def __init__(self, version: int, per_node: Scores, amounts: Amounts) -> None:
        self.version = version
        self.per_node = per_node
        """The counts that `amounts` are the sums of."""
        self.amounts = amounts


class PodsPerDomain:
    """Counts of pods per domain, for the questions that were asked."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._labels = handle.index(NodeLabels)
        self._known: OrderedDict[tuple[Question, str], _Sums] = OrderedDict()

    def of(self, pods: Question, key: str) -> Amounts:
        """The number of such pods per domain of `key`; to be read only, and only until the cluster changes."""
        per_node = self._handle.count_pods(pods, pods)
        known = self._known.get((pods, key))
        if known is None or known.version != self._labels.version:
            return self._sum_up(pods, key, per_node)
        self._known.move_to_end((pods, key))
        changed = np.flatnonzero(per_node != known.per_node).tolist()
        if len(changed) > _FEW_NODES:
            return self._sum_up(pods, key, per_node)
        if changed:
            self._carry_over(known, key, per_node, changed)
        return known.amounts

    def _carry_over(self, known: _Sums, key: str, per_node: Scores, changed: list[int]) -> None:
        codes = self._handle.nodes.labels(key)[0]
        for row in changed:
            code = codes[row]
            if code != MISSING:
                known.amounts[code] += per_node[row] - known.per_node[row]
            known.per_node[row] = per_node[row]

    def _sum_up(self, pods: Question, key: str, per_node: Scores) -> Amounts:
        amounts = sum_by_domain(per_node, key, self._handle.nodes)
        self._known[pods, key] = _Sums(self._labels.version, per_node.copy(), amounts)
        self._known.move_to_end((pods, key))
        if len(self._known) > _KEPT_SUMS:
            self._known.popitem(last=False)
        return amounts
