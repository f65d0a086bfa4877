"""NodeResourcesFit: does the pod fit into what the node has left, and how much would be left then?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Handle,
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
    Sees,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.model import Node, Pod
from pilotage.model.pod_resources import assigned_requests, container_requests, pod_requests
from pilotage.model.quantity import quantity_milli, quantity_value
from pilotage.model.resource import DeviceClass
from pilotage.plugins.args import NodeResourcesFitArgs
from pilotage.plugins.device_classes import IMPLICIT_PREFIX, DeviceClassIndex
from pilotage.plugins.device_supply import DeviceSupply
from pilotage.plugins.nothing_to_prepare import NothingBeforeFilter, NothingBeforeScore
from pilotage.plugins.resource_names import NATIVE, is_extended, is_scalar, is_scheduled
from pilotage.plugins.resource_scoring import strategy_of

_TOO_MANY_PODS = Reason("TooManyPods", "Too many pods")


class NodeResourcesFit(Plugin, NothingBeforeFilter, Filter, VectorFilter, NothingBeforeScore, Score, VectorScore):
    name = "NodeResourcesFit"
    filter_sees = Sees.AMOUNTS
    args_type = NodeResourcesFitArgs

    def __init__(self, handle: Handle, args: NodeResourcesFitArgs) -> None:
        self._args = args
        self._handle = handle
        self._devices = DeviceSupply(handle)
        self._strategy = strategy_of(args.scoring_strategy)
        # Not the plugin itself: a spec that referred to it would keep it, and all its cluster, for ever.
        self._memo_key = ("requests that must fit", args.ignored_resources, args.ignored_resource_groups)
        self._scored = tuple((spec.name, spec.weight) for spec in args.scoring_strategy.resources)

    # --- filter ------------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        reasons = [_TOO_MANY_PODS] if node.pod_count + 1 > node.allocatable("pods") else []
        for resource, amount in self._wanted(pod):
            offered = node.allocatable(resource)
            if amount > offered - node.requested(resource) and (offered or not self._devices.is_delegated(resource)):
                reasons.append(_insufficient(resource, amount, unresolvable=amount > offered))
        return Reject(*reasons) if reasons else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        yield nodes.pod_count + 1 > nodes.allocatable("pods"), _TOO_MANY_PODS
        for resource, amount in self._wanted(pod):
            short = amount > nodes.free(resource)
            if not short.any():
                continue
            offered = nodes.allocatable(resource)
            if self._devices.is_delegated(resource):
                # Where the node has none at all, DynamicResources finds devices for it, or refuses.
                short &= offered > 0
            hopeless = amount > offered
            yield short & ~hopeless, _insufficient(resource, amount, unresolvable=False)
            yield short & hopeless, _insufficient(resource, amount, unresolvable=True)

    def _wanted(self, pod: Pod) -> tuple[tuple[str, int], ...]:
        """What must fit; worked out once per spec."""
        known: tuple[tuple[str, int], ...] | None = pod.spec.memo.get(self._memo_key)
        if known is None:
            requests = pod_requests(pod.spec).items()
            known = tuple((name, amount) for name, amount in requests if amount > 0 and self._is_checked(name))
            pod.spec.memo[self._memo_key] = known
        return known

    def _is_checked(self, name: str) -> bool:
        if not is_extended(name):
            return is_scheduled(name)
        is_ignored_group = name.partition("/")[0] in self._args.ignored_resource_groups
        return not is_ignored_group and name not in self._args.ignored_resources

    # --- score -------------------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        total = weights = 0
        strategy = self._strategy
        for resource, weight, wanted in self._counted(pod):
            capacity, used = self._devices.on(node, resource, node.scored_request(resource))
            if not capacity:
                continue
            score = strategy.score(used + wanted, capacity)
            if strategy.counts(score):
                total += weight * score
                weights += weight
        return strategy.join(total, weights)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        totals = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for resource, weight, wanted in self._counted(pod):
            capacity, used = self._devices.columns(nodes, resource, nodes.scored_request(resource))
            scores = self._strategy.score_all(used + wanted, capacity)
            counting = (capacity > 0) * self._strategy.counts_all(scores)
            totals += weight * scores * counting
            weights += weight * counting
        return self._strategy.join_all(totals, weights)

    def _counted(self, pod: Pod) -> Iterator[tuple[str, int, int]]:
        """(resource, weight, amount) that the score looks at: extended resources only if the pod wants them."""
        wanted = container_requests(pod.spec)
        for resource, weight in self._scored:
            amount = wanted.get(resource, 0)
            if resource in NATIVE or (amount and is_scalar(resource)):
                yield resource, weight, amount

    def sign(self, pod: Pod) -> Hashable | None:
        if self._devices.may_serve([resource for resource, _, _ in self._counted(pod)]):
            return None
        return tuple(sorted(pod_requests(pod.spec).items())), tuple(sorted(container_requests(pod.spec).items()))

    def facts_version(self) -> Hashable:
        return self._handle.index(DeviceClassIndex).version

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_left(self, pod: Pod, old: Pod, new: Any) -> Hint:
        return Hint.QUEUE if old.node_name or old.status.nominated_node_name else Hint.SKIP

    @on_event(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
    def after_pod_shrank(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        before, after = assigned_requests(old), assigned_requests(new)
        wanted = (resource for resource, amount in pod_requests(pod.spec).items() if amount)
        shrank = any(after.get(resource, 0) < before.get(resource, 0) for resource in wanted)
        return Hint.QUEUE if shrank else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)
    def after_own_shrinking(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        offered = _allocatable(new)
        wanted = self._wanted(pod)
        by_devices = [name for name, _ in wanted if not offered.get(name, 0) and self._devices.is_delegated(name)]
        fits_empty = all(amount <= offered.get(name, 0) or name in by_devices for name, amount in wanted)
        if not fits_empty or offered.get("pods", 0) < 1:
            return Hint.SKIP
        if old is None or by_devices:
            return Hint.QUEUE
        before = _allocatable(old)
        names = ("pods", *(name for name, _ in wanted))
        return Hint.QUEUE if any(offered.get(name, 0) > before.get(name, 0) for name in names) else Hint.SKIP

    @on_event(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
    def after_class_change(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Hint:
        wanted = {name for name, _ in self._wanted(pod)}
        named = new.spec.extended_resource_name
        if named in wanted and (old is None or old.spec.extended_resource_name != named):
            return Hint.QUEUE
        return Hint.QUEUE if old is None and IMPLICIT_PREFIX + new.name in wanted else Hint.SKIP


@lru_cache(maxsize=1024)
def _insufficient(resource: str, amount: int, *, unresolvable: bool) -> Reason:
    return Reason("Insufficient", f"Insufficient {resource}", need=amount, unresolvable=unresolvable)


def _allocatable(node: Node) -> Mapping[str, int]:
    return {
        name: quantity_milli(text) if name == "cpu" else quantity_value(text)
        for name, text in node.status.allocatable.items()
    }
