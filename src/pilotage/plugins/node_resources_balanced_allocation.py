"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod brings into balance.

Balance is how close the used shares of the configured resources are to each other. What is scored is the *change*
that the pod makes: 75 if it leaves the balance as it is, more if it improves it. (Balance is never below 50, so the
change is between -50 and 50, and the score between 50 and 100.)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pilotage.api import CycleState, Handle, NodeTable, NodeView, Plugin, Score, Scores, VectorScore
from pilotage.api.points import NothingBeforeScore
from pilotage.model import Pod
from pilotage.model.pod_resources import pod_requests
from pilotage.plugins.args import NodeResourcesBalancedAllocationArgs
from pilotage.plugins.device_supply import DeviceSupply
from pilotage.plugins.exact_amounts import PAIR, ExactAmounts, exact_amounts, pair_balances
from pilotage.plugins.resource_names import NATIVE, is_scalar
from pilotage.plugins.resource_scoring import plus


class NodeResourcesBalancedAllocation(Plugin, NothingBeforeScore, Score, VectorScore):
    name = "NodeResourcesBalancedAllocation"
    args_type = NodeResourcesBalancedAllocationArgs

    def __init__(self, handle: Handle, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._devices = DeviceSupply(handle)
        self._resources = tuple(spec.name for spec in args.resources)
        self._native = tuple(resource for resource in self._resources if resource in NATIVE)
        self._memo_key = f"requests that are to be balanced: {self._resources}"

    def may_score(self, pod: Pod) -> bool:
        return any(pod_requests(pod.spec).get(resource) for resource in self._resources)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        before, after = [], []
        for resource, wanted in self._wanted(pod):
            capacity, used = node.allocatable(resource), node.requested(resource)
            if not capacity:
                capacity, used = self._devices.on(state.budget, node, resource, used)
                if not capacity:
                    continue
            before.append(used / capacity if used < capacity else 1.0)
            used += wanted
            after.append(used / capacity if used < capacity else 1.0)
        return 50 + (50 + _balance(after) - _balance(before)) // 2

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        wanted = pod_requests(pod.spec)
        counted = self._counted(wanted)
        if len(counted) == PAIR and tuple(counted) == self._native:
            more = [wanted.get(resource, 0) for resource in counted]
            amounts = exact_amounts(nodes, self._native, more)
            if amounts is not None:
                return _pair_scores(amounts, more)
        offered = np.zeros((len(counted), len(nodes)), dtype=np.bool_)
        before, after = np.zeros(offered.shape), np.zeros(offered.shape)
        for place, resource in enumerate(counted):
            capacity, used = self._devices.columns(state.budget, nodes, resource, nodes.requested(resource))
            offered[place], most = capacity > 0, np.maximum(capacity, 1)
            before[place] = np.minimum(used / most, 1.0)
            after[place] = np.minimum(plus(used, wanted.get(resource, 0)) / most, 1.0)
        return 50 + (50 + _balances(offered, after) - _balances(offered, before)) // 2

    def _wanted(self, pod: Pod) -> tuple[tuple[str, int], ...]:
        """The resources that count, with what the pod wants of them; worked out once per spec."""
        known: tuple[tuple[str, int], ...] | None = pod.spec.memo.get(self._memo_key)
        if known is None:
            wanted = pod_requests(pod.spec)
            known = tuple((resource, wanted.get(resource, 0)) for resource in self._counted(wanted))
            pod.spec.memo[self._memo_key] = known
        return known

    def _counted(self, wanted: Mapping[str, int]) -> list[str]:
        """Extended resources take part only if the pod wants them."""
        return [
            resource
            for resource in self._resources
            if resource in NATIVE or (wanted.get(resource, 0) and is_scalar(resource))
        ]

    def sign(self, pod: Pod) -> Hashable | None:
        wanted = pod_requests(pod.spec)
        if self._devices.may_serve(self._counted(wanted)):
            return None
        return tuple(wanted.get(resource, 0) for resource in self._resources)


def _balance(shares: Sequence[float]) -> int:
    """100 where the resources are used to the same degree, less the further they are apart."""
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        spread = abs((shares[0] - shares[1]) / 2)
    else:
        mean = sum(shares) / len(shares)
        spread = math.sqrt(sum((share - mean) * (share - mean) for share in shares) / len(shares))
    return int((1 - spread) * 100)


def _pair_scores(amounts: ExactAmounts, wanted: Sequence[int]) -> Scores:
    """The scores by two resources that all nodes offer, in few steps."""
    change = pair_balances(amounts.capacity, amounts.requested, wanted)
    change -= amounts.balance
    change += 150  # 50 + (50 + change) // 2 for each
    change *= 0.5
    return change.astype(np.int64)


def _balances(offered: NDArray[np.bool_], shares: NDArray[np.float64]) -> Scores:
    """The same for all nodes, a row for each resource; one that a node does not offer is left out there."""
    number = offered.sum(axis=0)
    highest = np.where(offered, shares, 0.0).max(axis=0, initial=0.0)
    lowest = np.where(offered, shares, 1.0).min(axis=0, initial=1.0)
    pair = (highest - lowest) / 2
    mean = np.where(offered, shares, 0.0).sum(axis=0) / np.maximum(number, 1)
    deviation = np.sqrt((np.where(offered, shares - mean, 0.0) ** 2).sum(axis=0) / np.maximum(number, 1))
    spread = np.where(number < 2, 0.0, np.where(number == 2, pair, deviation))
    balances: Scores = ((1 - spread) * 100).astype(np.int64)
    return balances
