"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod brings into balance.

Balance is how close the used shares of cpu and memory are to each other. What is scored is the *change* that the pod
makes: 75 if it leaves the balance as it is, more if it improves it. (Balance is never below 50, so the change is
between -50 and 50, and the score between 50 and 100.)
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from pilotage.api import CycleState, NodeTable, NodeView, Plugin, PreScore, Score, Scores, Skip, VectorScore
from pilotage.api.results import SKIP
from pilotage.model import Pod
from pilotage.model.pod_resources import pod_requests

_BALANCED = ("cpu", "memory")


class NodeResourcesBalancedAllocation(Plugin, PreScore, Score, VectorScore):
    name = "NodeResourcesBalancedAllocation"

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        wanted = pod_requests(pod.spec)
        return None if any(wanted.get(resource, 0) for resource in _BALANCED) else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        wanted = pod_requests(pod.spec)
        return 50 + (50 + _balance_of(node, wanted) - _balance_of(node, {})) // 2

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        wanted = pod_requests(pod.spec)
        change = _balance(nodes, wanted) - _balance(nodes, {})
        return 50 + (50 + change) // 2

    def sign(self, pod: Pod) -> Hashable | None:
        wanted = pod_requests(pod.spec)
        return tuple(wanted.get(resource, 0) for resource in _BALANCED)


def _balance_of(node: NodeView, added: Mapping[str, int]) -> int:
    """100 where cpu and memory are used to the same degree, less the further they are apart."""
    shares = []
    for resource in _BALANCED:
        capacity = node.allocatable(resource)
        if not capacity:
            return 100
        shares.append(min((node.requested(resource) + added.get(resource, 0)) / capacity, 1.0))
    return int((1 - abs(shares[0] - shares[1]) / 2) * 100)


def _balance(nodes: NodeTable, added: Mapping[str, int]) -> Scores:
    """100 where cpu and memory are used to the same degree, less the further they are apart."""
    counted = np.ones(len(nodes), dtype=np.bool_)
    shares = []
    for resource in _BALANCED:
        capacity = nodes.allocatable(resource)
        used = nodes.requested(resource) + added.get(resource, 0)
        shares.append(np.minimum(used / np.maximum(capacity, 1), 1.0))
        counted &= capacity > 0
    # Of two shares the standard deviation is half their distance; with fewer than two there is nothing to balance.
    spread = np.where(counted, np.abs(shares[0] - shares[1]) / 2, 0.0)
    return ((1 - spread) * 100).astype(np.int64)
