"""NodeResourcesFit: does the pod fit into what the node has left, and how much would be left then?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

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
    PlacementScore,
    Plugin,
    ProposedPlacement,
    Reason,
    Reject,
    Rejection,
    Resource,
    Score,
    Scores,
    Sees,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.api.points import NothingBeforeFilter, NothingBeforeScore
from pilotage.model import Node, Pod
from pilotage.model.names import is_extended_resource
from pilotage.model.pod_group import PodGroup
from pilotage.model.pod_resources import (
    assigned_non_zero_requests,
    assigned_requests,
    container_requests,
    pod_requests,
)
from pilotage.model.quantity import quantity_nanos, resource_amount
from pilotage.model.resource import DeviceClass
from pilotage.plugins.args import NodeResourcesFitArgs
from pilotage.plugins.device_classes import IMPLICIT_PREFIX, DeviceClassIndex
from pilotage.plugins.device_supply import DeviceSupply
from pilotage.plugins.exact_amounts import ExactAmounts, Floats, exact_amounts, percent_of_exact
from pilotage.plugins.fragments import fragment_of
from pilotage.plugins.resource_names import NATIVE, is_scalar, is_scheduled
from pilotage.plugins.resource_scoring import MostAllocated, ShareStrategy, plus, strategy_of

_TOO_MANY_PODS = Reason("TooManyPods", "Too many pods")
_MOST_NAMED: Final = 64
"""Of a pod that wants more resources than this, the others share one reason."""


class _Wanted(NamedTuple):
    """What must fit, by name and amount."""

    named: tuple[tuple[str, int], ...]
    others: tuple[tuple[str, int], ...]

    def pairs(self) -> Iterator[tuple[str, int]]:
        return chain(self.named, self.others)


class NodeResourcesFit(
    Plugin, NothingBeforeFilter, Filter, VectorFilter, NothingBeforeScore, Score, VectorScore, PlacementScore
):
    name = "NodeResourcesFit"
    filter_sees = Sees.AMOUNTS
    pure_hints = True
    args_type = NodeResourcesFitArgs

    def __init__(self, handle: Handle, args: NodeResourcesFitArgs) -> None:
        self._args = args
        self._handle = handle
        self._devices = DeviceSupply(handle)
        self._strategy = strategy_of(args.scoring_strategy)
        self._fullest = MostAllocated()
        # Not the plugin itself: a spec that referred to it would keep it, and all its cluster, for ever.
        self._memo_key = f"requests that must fit, but {args.ignored_resources}, {args.ignored_resource_groups}"
        self._scored = tuple((spec.name, spec.weight) for spec in args.scoring_strategy.resources)
        self._scored_key = f"requests that are scored: {self._scored}"
        self._native = tuple(resource for resource, _ in self._scored if resource in NATIVE)

    # --- filter ------------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        reasons = [_TOO_MANY_PODS] if node.pod_count + 1 > node.allocatable("pods") else []
        wanted = self._wanted(pod)
        for resource, amount in wanted.named:
            offered = node.allocatable(resource)
            if amount > offered - node.requested(resource) and self._is_own(resource, offered):
                reasons.append(_insufficient(resource, amount, unresolvable=amount > offered))
        if wanted.others:
            reasons += self._short_of_others(state, wanted, node)
        return Reject(*reasons) if reasons else None

    def _is_own(self, resource: str, offered: int) -> bool:
        """Whether it is the node that must have it. Where it has none at all, devices may serve it."""
        return bool(offered) or not self._devices.is_delegated(resource)

    def _short_of_others(self, state: CycleState, wanted: _Wanted, node: NodeView) -> list[Reason]:
        """One reason for all resources that are not listed one by one; the first that rules the node out will do."""
        short = False
        for resource, amount in wanted.others:
            state.budget.spend()
            offered = node.allocatable(resource)
            if amount > offered - node.requested(resource) and self._is_own(resource, offered):
                short = True
                if amount > offered:
                    return [_insufficient_others(len(wanted.others), unresolvable=True)]
        return [_insufficient_others(len(wanted.others), unresolvable=False)] if short else []

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        yield nodes.pod_count + 1 > nodes.allocatable("pods"), _TOO_MANY_PODS
        wanted = self._wanted(pod)
        for resource, amount in wanted.named:
            found = self._short(nodes, resource, amount)
            if found is None:
                continue
            short, hopeless = found
            yield short & ~hopeless, _insufficient(resource, amount, unresolvable=False)
            yield short & hopeless, _insufficient(resource, amount, unresolvable=True)
        if wanted.others:
            yield from self._all_short_of_others(state, wanted, nodes)

    def _short(self, nodes: NodeTable, resource: str, amount: int) -> tuple[Mask, Mask] | None:
        """Where there is not enough, and where there never is; None if there is enough everywhere."""
        offered = nodes.allocatable(resource)
        short = amount > offered - nodes.requested(resource)
        if not short.any():
            return None
        hopeless = amount > offered
        if self._devices.is_delegated(resource):
            # Where the node has none at all, DynamicResources finds devices for it, or rejects.
            short &= offered > 0
        return short, hopeless

    def _all_short_of_others(
        self, state: CycleState, wanted: _Wanted, nodes: NodeTable
    ) -> Iterator[tuple[Mask, Reason]]:
        short_anywhere, hopeless_anywhere = nodes.everywhere(False), nodes.everywhere(False)
        # What no node offers rules all of them out: look for that first.
        for resource, amount in sorted(wanted.others, key=lambda pair: nodes.is_offered(pair[0])):
            state.budget.spend(1 + len(nodes) // 64)
            if (found := self._short(nodes, resource, amount)) is not None:
                short, hopeless = found
                short_anywhere |= short
                hopeless_anywhere |= short & hopeless
                if hopeless_anywhere.all():
                    break
        count = len(wanted.others)
        yield short_anywhere & ~hopeless_anywhere, _insufficient_others(count, unresolvable=False)
        yield hopeless_anywhere, _insufficient_others(count, unresolvable=True)

    def _wanted(self, pod: Pod) -> _Wanted:
        """What must fit; worked out once per spec."""
        known: _Wanted | None = pod.spec.memo.get(self._memo_key)
        if known is None:
            requests = pod_requests(pod.spec).items()
            checked = [(name, amount) for name, amount in requests if amount > 0 and self._is_checked(name)]
            if len(checked) > _MOST_NAMED:
                checked.sort(key=lambda pair: pair[0] not in NATIVE)
            known = _Wanted(tuple(checked[:_MOST_NAMED]), tuple(checked[_MOST_NAMED:]))
            pod.spec.memo[self._memo_key] = known
        return known

    def _is_checked(self, name: str) -> bool:
        if not is_extended_resource(name):
            return is_scheduled(name)
        is_ignored_group = name.partition("/")[0] in self._args.ignored_resource_groups
        return not is_ignored_group and name not in self._args.ignored_resources

    # --- placements of groups ----------------------------------------------------------------------------------

    def score_placement(self, state: CycleState, group: PodGroup, proposed: ProposedPlacement, nodes: NodeTable) -> int:
        """How full the nodes would be together: the placement that ends up fullest leaves the others whole."""
        rows = proposed.placement.rows
        pods = [pod for members in proposed.members.values() for pod in members]
        total = weights = 0
        for resource, weight in self._scored:
            wanted = sum(_scored_request(pod, resource) for pod in pods)
            capacity = int(nodes.allocatable(resource)[rows].sum())
            if not capacity or (is_extended_resource(resource) and not wanted):
                continue
            total += weight * self._fullest.score(
                int(nodes.non_zero_requested(resource)[rows].sum()) + wanted, capacity
            )
            weights += weight
        return self._fullest.join(total, weights)

    # --- score -------------------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        total = weights = 0
        strategy = self._strategy
        for resource, weight, wanted in self._counted(pod):
            capacity, used = node.allocatable(resource), node.non_zero_requested(resource)
            if not capacity:
                capacity, used = self._devices.on(state.budget, node, resource, used)
                if not capacity:
                    continue
            score = strategy.score(used + wanted, capacity)
            if score or strategy.counts_zero:
                total += weight * score
                weights += weight
        return strategy.join(total, weights)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        counted = self._counted(pod)
        if isinstance(self._strategy, ShareStrategy) and all(resource in NATIVE for resource, _, _ in counted):
            amounts = exact_amounts(nodes, self._native, [wanted for _, _, wanted in counted])
            if amounts is not None:
                return _exact_shares(self._strategy, counted, amounts)
        totals = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for resource, weight, wanted in counted:
            capacity, used = self._devices.columns(state.budget, nodes, resource, nodes.non_zero_requested(resource))
            scores = self._strategy.score_all(plus(used, wanted), capacity)
            counting = (capacity > 0) * self._strategy.counts_all(scores)
            totals += weight * scores * counting
            weights += weight * counting
        return self._strategy.join_all(totals, weights)

    def _counted(self, pod: Pod) -> tuple[tuple[str, int, int], ...]:
        """(resource, weight, amount) that the score looks at: extended resources only if the pod wants them."""
        known: tuple[tuple[str, int, int], ...] | None = pod.spec.memo.get(self._scored_key)
        if known is None:
            requests = container_requests(pod.spec)
            each = ((resource, weight, requests.get(resource, 0)) for resource, weight in self._scored)
            known = tuple(one for one in each if one[0] in NATIVE or (one[2] and is_scalar(one[0])))
            pod.spec.memo[self._scored_key] = known
        return known

    def sign(self, pod: Pod) -> Hashable | None:
        if self._devices.may_serve([resource for resource, _, _ in self._counted(pod)]):
            return None
        requests, by_containers = pod_requests(pod.spec), container_requests(pod.spec)
        return fragment_of(tuple(sorted(requests.items()))), fragment_of(tuple(sorted(by_containers.items())))

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
        if _offered(new, "pods") < 1:
            return Hint.SKIP
        by_devices = False
        for name, amount in self._wanted(pod).pairs():
            if amount > (offered := _offered(new, name)):
                if offered or not self._devices.is_delegated(name):
                    return Hint.SKIP
                by_devices = True
        if old is None or by_devices:
            return Hint.QUEUE
        names = chain(("pods",), (name for name, _ in self._wanted(pod).pairs()))
        return Hint.QUEUE if any(_offered(new, name) > _offered(old, name) for name in names) else Hint.SKIP

    @on_event(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
    def after_class_change(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Hint:
        wanted = {name for name, _ in self._wanted(pod).pairs()}
        named = new.spec.extended_resource_name
        if named in wanted and (old is None or old.spec.extended_resource_name != named):
            return Hint.QUEUE
        return Hint.QUEUE if old is None and IMPLICIT_PREFIX + new.name in wanted else Hint.SKIP


@lru_cache(maxsize=1024)
def _insufficient(resource: str, amount: int, *, unresolvable: bool) -> Reason:
    return Reason("Insufficient", f"Insufficient {resource}", need=amount, unresolvable=unresolvable, resource=resource)


def _insufficient_others(count: int, *, unresolvable: bool) -> Reason:
    return Reason("InsufficientOthers", f"Insufficient amounts of {count} more resources", unresolvable=unresolvable)


def _exact_shares(strategy: ShareStrategy, counted: Sequence[tuple[str, int, int]], amounts: ExactAmounts) -> Scores:
    """The joined score where all amounts are exact, in few steps."""
    total: Floats | None = None
    weights = 0
    for (_, weight, wanted), capacity, used in zip(counted, amounts.capacity, amounts.scored, strict=True):
        requested = used + wanted
        score = percent_of_exact(strategy.part(requested, capacity, out=requested), capacity)
        if weight != 1:
            score *= weight
        total = score if total is None else np.add(total, score, out=total)
        weights += weight
    assert total is not None
    total /= weights
    # Below zero there is nothing: what the conversion cuts off is what is rounded down.
    return total.astype(np.int64)


def _offered(node: Node, resource: str) -> int:
    return resource_amount(resource, quantity_nanos(node.status.allocatable.get(resource, 0)))


def _scored_request(pod: Pod, resource: str) -> int:
    """What scores count of a pod's request."""
    if resource in ("cpu", "memory"):
        return assigned_non_zero_requests(pod)[resource == "memory"]
    return assigned_requests(pod).get(resource, 0)
