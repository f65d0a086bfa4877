"""Keep pods near those that they talk to: what NetworkOverhead does, from its description, without CRDs.

    pilotage sandbox --plugin examples/plugins/network_cost.py --config examples/plugins/network_cost.config.yaml \\
        -f examples/plugins/network_cost.yaml
    kubectl get pods -o wide        # p1-0 is on the node of p2-0, which it talks to

Pods carry two labels: their application (example.com/app-group) and their part in it (example.com/workload). The
arguments say which part depends on which, what it may cost to reach it at most, and what it costs between zones and
between regions. On the same node a dependency costs nothing, in the same zone 1.

- Filter: a node from which more dependencies are too far than near enough is rejected.
- Score: the accumulated cost of reaching all pods that it depends on; the lowest is the best.

Everything is computed in PreFilter, once per pod and for all nodes: pods are counted per node by `handle.count_pods`,
which keeps the counts up to date, and the costs are a matrix over the zones that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pilotage.api import (
    Action,
    CycleState,
    Handle,
    Hint,
    Mask,
    Node,
    NodeTable,
    NormalizeScore,
    Plugin,
    Pod,
    PodClass,
    PreFilter,
    Reason,
    Resource,
    Scores,
    Skip,
    StateKey,
    VectorFilter,
    VectorScore,
    on_event,
)

GROUP = "example.com/app-group"
WORKLOAD = "example.com/workload"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

SAME_ZONE = 1
UNKNOWN = 100
"""What it costs to get to a place of which the arguments say nothing."""
TOO_FAR = Reason("NetworkTooFar", "node(s) were too far from what the pod depends on", unresolvable=True)


@dataclass(frozen=True)
class Dependency:
    workload: str
    max_network_cost: int = UNKNOWN


@dataclass(frozen=True)
class Cost:
    """Between two zones or two regions; for both directions unless the other one is given too."""

    origin: str
    destination: str
    cost: int


@dataclass(frozen=True)
class NetworkCostArgs:
    app_groups: Mapping[str, Mapping[str, tuple[Dependency, ...]]] = field(default_factory=dict)
    """By application and workload, what it depends on."""
    zone_costs: tuple[Cost, ...] = ()
    region_costs: tuple[Cost, ...] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        for name, costs in (("zoneCosts", self.zone_costs), ("regionCosts", self.region_costs)):
            if any(cost.cost < 0 for cost in costs):
                yield name, "costs must not be negative"


@dataclass(frozen=True)
class Costs:
    """For one pod, per node of the cluster."""

    total: Scores
    is_too_far: Mask


COSTS = StateKey[Costs]("NetworkCost/costs")


class NetworkCost(Plugin, PreFilter, VectorFilter, VectorScore, NormalizeScore):
    """Cheap ways to what a pod depends on."""

    args_type = NetworkCostArgs

    def __init__(self, handle: Handle, args: NetworkCostArgs) -> None:
        self._handle = handle
        self._groups = args.app_groups
        self._zones, self._regions = _both_ways(args.zone_costs), _both_ways(args.region_costs)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        dependencies = self._dependencies(pod)
        if not dependencies:
            return Skip()
        places, matrix = self._matrix(nodes, state)
        total = np.zeros(len(nodes), dtype=np.int64)
        near, far = total.copy(), total.copy()
        for dependency in dependencies:
            here = self._count(pod, dependency.workload)
            per_place = np.bincount(places, weights=here, minlength=len(matrix)).astype(np.int64)
            in_reach = matrix <= dependency.max_network_cost
            np.fill_diagonal(in_reach, True)  # what is in the same zone is always near enough
            total += (matrix @ per_place)[places] - here * matrix.diagonal()[places]
            near += (in_reach @ per_place)[places]
            far += (~in_reach @ per_place)[places]
        state[COSTS] = Costs(total, far > near)
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        costs = state.get(COSTS)
        if costs is not None:
            yield nodes.pick(costs.is_too_far), TOO_FAR

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        costs = state.get(COSTS)
        return np.zeros(len(nodes), dtype=np.int64) if costs is None else nodes.pick(costs.total)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.full(len(scores), 100, dtype=np.int64)
        return 100 - 100 * (scores - lowest) // (highest - lowest)

    @on_event(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL)
    def after_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        """Somebody on whom the pod depends came, went, or became it."""
        wanted = {dependency.workload for dependency in self._dependencies(pod)}
        concerned = any(
            one is not None and one.namespace == pod.namespace and one.labels.get(GROUP) == pod.labels.get(GROUP)
            and one.labels.get(WORKLOAD) in wanted
            for one in (old, new)
        )  # fmt: skip
        return Hint.QUEUE if concerned else Hint.SKIP

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if old is not None and _place(old.labels) == _place(new.labels):
            return Hint.SKIP
        return Hint.QUEUE

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)
    def after_own_labels(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE

    # --- counting ----------------------------------------------------------------------------------------------

    def _dependencies(self, pod: Pod) -> tuple[Dependency, ...]:
        group = self._groups.get(pod.labels.get(GROUP, ""), {})
        return group.get(pod.labels.get(WORKLOAD, ""), ())

    def _count(self, pod: Pod, workload: str) -> Scores:
        """Per node, how many pods there are of one part of the pod's application."""
        namespace, group = pod.namespace, pod.labels[GROUP]

        def wanted(pods: PodClass) -> bool:
            labels = pods.labels
            return pods.namespace == namespace and labels.get(GROUP) == group and labels.get(WORKLOAD) == workload

        return self._handle.count_pods(("NetworkCost", namespace, group, workload), wanted)

    def _matrix(self, nodes: NodeTable, state: CycleState) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each node the number of its place, and what it costs from place to place."""
        zones, zone_names = nodes.labels(ZONE)
        regions, region_names = nodes.labels(REGION)
        pairs, places = np.unique(np.stack([regions, zones]), axis=1, return_inverse=True)
        # A code of -1 stands for a node without the label.
        names = [
            (region_names[region] if region >= 0 else "", zone_names[zone] if zone >= 0 else "")
            for region, zone in pairs.T.tolist()
        ]
        state.budget.spend(len(names) ** 2)
        matrix = np.array([[self._cost(one, other) for other in names] for one in names], dtype=np.int64)
        return places.reshape(-1), matrix

    def _cost(self, one: tuple[str, str], other: tuple[str, str]) -> int:
        if one == other:
            return SAME_ZONE
        costs, at = (self._zones, 1) if one[0] == other[0] else (self._regions, 0)
        return costs.get((one[at], other[at]), UNKNOWN)


def _place(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels.get(REGION, ""), labels.get(ZONE, "")


def _both_ways(costs: tuple[Cost, ...]) -> dict[tuple[str, str], int]:
    back = {(cost.destination, cost.origin): cost.cost for cost in costs}
    return back | {(cost.origin, cost.destination): cost.cost for cost in costs}
