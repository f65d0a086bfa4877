"""How many pods in each topology domain are what a question asks for.

`handle.count_pods` keeps the counts per node. Summing them up per domain costs more than everything else that is done
for a pod, so the sums are kept too: between two pods of a workload a node or two have changed, and only those are
carried over. All is summed anew when nodes come, go or move to another domain.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from pilotage.api import Budget, ClusterIndex, Handle, NodeTable, PodClass, Scores
from pilotage.model import Node
from pilotage.plugins.inter_pod_affinity.domains import MISSING, Amounts, sum_by_domain
from pilotage.plugins.inter_pod_affinity.incoming import PodSelection, WidePreferredTerms

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
    __slots__ = ("amounts", "per_node", "values", "version")

    def __init__(self, version: int, values: Sequence[str], per_node: Scores, amounts: Amounts) -> None:
        self.version = version
        self.values = values
        """By which the domains are numbered."""
        self.per_node = per_node
        """The counts that `amounts` are the sums of."""
        self.amounts = amounts


class PodsPerDomain:
    """Counts of pods per domain, for the questions that were asked."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._labels = handle.index(NodeLabels)
        self._known: OrderedDict[tuple[PodSelection, str], _Sums] = OrderedDict()

    def of(self, pods: PodSelection, key: str, budget: Budget) -> Amounts:
        """The number of such pods per domain of `key`; to be read only, and only until the cluster changes."""
        if pods.is_wide:
            return self.weighed(pods, key, budget)
        per_node = self._handle.count_pods(pods, pods, budget)
        known = self._known.get((pods, key))
        values = self._handle.nodes.labels(key)[1]
        if known is None or known.version != self._labels.version or known.values is not values:
            return self._sum_up(pods, key, per_node, budget)
        self._known.move_to_end((pods, key))
        changed = np.flatnonzero(per_node != known.per_node).tolist()
        if len(changed) > _FEW_NODES:
            return self._sum_up(pods, key, per_node, budget)
        if changed:
            self._carry_over(known, key, per_node, changed)
        return known.amounts

    def weighed(self, pods: PodSelection | WidePreferredTerms, key: str, budget: Budget) -> Amounts:
        """The weights of pods per domain, worked out anew."""
        nodes, steps = self._handle.nodes, len(pods)

        def weigh(pod_class: PodClass) -> int:
            budget.spend(steps)
            return int(pods(pod_class))

        budget.spend(_steps(nodes))
        return sum_by_domain(self._handle.weigh_pods(weigh, budget), key, nodes)

    def _carry_over(self, known: _Sums, key: str, per_node: Scores, changed: list[int]) -> None:
        codes = self._handle.nodes.labels(key)[0]
        for row in changed:
            code = codes[row]
            if code != MISSING:
                known.amounts[code] += per_node[row] - known.per_node[row]
            known.per_node[row] = per_node[row]

    def _sum_up(self, pods: PodSelection, key: str, per_node: Scores, budget: Budget) -> Amounts:
        nodes = self._handle.nodes
        budget.spend(_steps(nodes))
        amounts = sum_by_domain(per_node, key, nodes)
        self._known[pods, key] = _Sums(self._labels.version, nodes.labels(key)[1], per_node.copy(), amounts)
        self._known.move_to_end((pods, key))
        if len(self._known) > _KEPT_SUMS:
            self._known.popitem(last=False)
        return amounts


def _steps(nodes: NodeTable) -> int:
    """What it takes to sum up a column."""
    return 16 + len(nodes) // 16
