"""Preferred terms: what draws the pod to a node or pushes it away.

Per topology domain the weights of all matching terms are added up, those of the pod about the pods that are there and
those of the pods that are there about the pod. A node's score is the sum over its domains; it may be negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pilotage.api import Budget, NodeTable, NodeView, Scores
from pilotage.plugins.inter_pod_affinity.domains import AffinityDomains, Amounts, at_nodes
from pilotage.plugins.inter_pod_affinity.incoming import PreferredTerm, WidePreferredTerms
from pilotage.plugins.inter_pod_affinity.pods_per_domain import PodsPerDomain
from pilotage.plugins.normalize import MAX_SCORE


class ScoreState:
    """Weights per topology key and domain."""

    __slots__ = ("_domains", "weights")

    def __init__(self, weights: Mapping[str, Amounts], domains: Mapping[str, AffinityDomains]) -> None:
        self.weights = weights
        self._domains = domains

    def score(self, node: NodeView) -> int:
        labels, domains = node.labels, self._domains
        return sum(int(amounts[domains[key].number(labels.get(key))]) for key, amounts in self.weights.items())

    def score_all(self, nodes: NodeTable) -> Scores:
        parts = [at_nodes(amounts, key, nodes) for key, amounts in self.weights.items()]
        return parts[0] if len(parts) == 1 else np.sum(parts, axis=0, dtype=np.int64)


def preferred_by_domain(
    preferred: Iterable[tuple[str, PreferredTerm | WidePreferredTerms]], pods: PodsPerDomain, budget: Budget
) -> dict[str, Amounts]:
    """By topology key, how much the pod likes the pods of each domain; only keys for which it found any."""
    found: dict[str, Amounts] = {}
    for key, term in preferred:
        count = (
            pods.weighed(term, key, budget) if isinstance(term, WidePreferredTerms) else pods.of(term.pods, key, budget)
        )
        if count.any():
            liking = count if isinstance(term, WidePreferredTerms) else count * term.weight
            before = found.get(key)
            found[key] = liking if before is None else before + liking
    return found


def between_extremes(raw: Scores) -> Scores:
    """The lowest score becomes 0, the highest 100; if all are the same, 0."""
    lowest, highest = (int(raw.min()), int(raw.max())) if len(raw) else (0, 0)
    if lowest == highest:
        return np.zeros_like(raw)
    # In this order of floating point operations, so that the fractions that are cut off are kube-scheduler's.
    scaled: Scores = (MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)
    return scaled
