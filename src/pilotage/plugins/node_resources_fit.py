"""NodeResourcesFit: does the pod fit into what the node has left, and how much would be left then?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from pilotage.api import (
    Action,
    CycleState,
    Hint,
    Mask,
    NodeTable,
    Plugin,
    Reason,
    Resource,
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


class NodeResourcesFit(Plugin, VectorFilter, VectorScore):
    name = "NodeResourcesFit"

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        yield nodes.pod_count + 1 > nodes.allocatable("pods"), _TOO_MANY_PODS
        for resource, amount in pod_requests(pod.spec).items():
            if amount <= 0:
                continue
            short = amount > nodes.free(resource)
            hopeless = amount > nodes.allocatable(resource)
            yield short & ~hopeless, _insufficient(resource, amount, unresolvable=False)
            yield short & hopeless, _insufficient(resource, amount, unresolvable=True)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        """LeastAllocated: the share that stays free, averaged over the scored resources."""
        wanted = dict(zip(("cpu", "memory"), non_zero_requests(pod.spec), strict=True))
        score = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for resource, weight in _SCORED:
            capacity = nodes.allocatable(resource)
            left = capacity - nodes.scored_request(resource) - wanted[resource]
            score += weight * _share(np.maximum(left, 0), capacity)
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


def _share(part: Scores, whole: Scores) -> Scores:
    """part / whole in percent, rounded down; 0 where there is no whole."""
    percent: Scores = part * 100 // np.maximum(whole, 1)
    return np.where(whole > 0, percent, 0)


def _allocatable(node: Node) -> Mapping[str, int]:
    return {
        name: quantity_milli(text) if name == "cpu" else quantity_value(text)
        for name, text in node.status.allocatable.items()
    }
