"""NodeResourcesFit: does the pod fit into what the node has left, and how much would be left then?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    Plugin,
    Reason,
    Refusal,
    Reject,
    Resource,
    Score,
    Scores,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.model import Node, Pod
from pilotage.model.pod_resources import non_zero_requests, pod_requests
from pilotage.model.quantity import quantity_milli, quantity_value

_TOO_MANY_PODS = Reason("TooManyPods", "Too many pods")
_SCORED = (("cpu", 1), ("memory", 1))


class NodeResourcesFit(Plugin, Filter, VectorFilter, Score, VectorScore):
    name = "NodeResourcesFit"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        reasons = [_TOO_MANY_PODS] if node.pod_count + 1 > node.allocatable("pods") else []
        for resource, amount in pod_requests(pod.spec).items():
            offered = node.allocatable(resource)
            if amount > 0 and amount > offered - node.requested(resource):
                reasons.append(_insufficient(resource, amount, unresolvable=amount > offered))
        return Reject(*reasons) if reasons else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        yield nodes.pod_count + 1 > nodes.allocatable("pods"), _TOO_MANY_PODS
        for resource, amount in pod_requests(pod.spec).items():
            if amount <= 0:
                continue
            short = amount > nodes.free(resource)
            if not short.any():
                continue
            hopeless = amount > nodes.allocatable(resource)
            yield short & ~hopeless, _insufficient(resource, amount, unresolvable=False)
            yield short & hopeless, _insufficient(resource, amount, unresolvable=True)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        """LeastAllocated: the share that stays free, averaged over the scored resources."""
        score = weights = 0
        for (resource, weight), wanted in zip(_SCORED, non_zero_requests(pod.spec), strict=True):
            capacity = node.allocatable(resource)
            if capacity:
                score += weight * (max(capacity - node.scored_request(resource) - wanted, 0) * 100 // capacity)
                weights += weight
        return score // weights if weights else 0

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        score = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for (resource, weight), wanted in zip(_SCORED, non_zero_requests(pod.spec), strict=True):
            capacity = nodes.allocatable(resource)
            left = np.maximum(capacity - nodes.scored_request(resource) - wanted, 0)
            # A node that offers none of the resource has nothing left of it either, so it adds 0.
            score += weight * (left * 100 // np.maximum(capacity, 1))
            weights += weight * (capacity > 0)
        return score // np.maximum(weights, 1)

    def sign(self, pod: Pod) -> Hashable | None:
        return tuple(sorted(pod_requests(pod.spec).items())), non_zero_requests(pod.spec)

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_left(self, pod: Pod, old: Pod, new: Any) -> Hint:
        return Hint.QUEUE if old.node_name or old.status.nominated_node_name else Hint.SKIP

    @on_event(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
    def after_pod_shrank(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        before, after = pod_requests(old.spec), pod_requests(new.spec)
        wanted = pod_requests(pod.spec)
        shrank = any(after.get(resource, 0) < before.get(resource, 0) for resource in wanted)
        return Hint.QUEUE if shrank else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)
    def after_own_shrinking(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        wanted = pod_requests(pod.spec)
        offered = _allocatable(new)
        fits_empty = offered.get("pods", 0) >= 1 and all(
            amount <= offered.get(resource, 0) for resource, amount in wanted.items()
        )
        if not fits_empty:
            return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        before = _allocatable(old)
        grew = any(offered.get(resource, 0) > before.get(resource, 0) for resource in ("pods", *wanted))
        return Hint.QUEUE if grew else Hint.SKIP


def _insufficient(resource: str, amount: int, *, unresolvable: bool) -> Reason:
    return Reason("Insufficient", f"Insufficient {resource}", need=amount, unresolvable=unresolvable)


def _allocatable(node: Node) -> Mapping[str, int]:
    return {
        name: quantity_milli(text) if name == "cpu" else quantity_value(text)
        for name, text in node.status.allocatable.items()
    }
