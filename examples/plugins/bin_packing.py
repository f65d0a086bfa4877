"""Fill nodes up before taking new ones: a vectorised score.

    pilotage sandbox --plugin examples/plugins/bin_packing.py --config examples/plugins/bin_packing.config.yaml \\
        -f examples/plugins/bin_packing.yaml
    kubectl get pods -o wide        # all six are on one node; without the plugin they spread over three

A node gets as many points as it would be full with the pod on it, averaged over the resources in the arguments. The
score is computed for all nodes at once, in a few NumPy operations, and once more for a single node: the scheduler asks
that form when only a few nodes have changed. Without the configuration it is one score among the
default ones, which prefer empty nodes and outweigh it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from pilotage.api import (
    CycleState,
    NodeTable,
    NodeView,
    Plugin,
    Pod,
    Score,
    Scores,
    VectorScore,
    non_zero_requests,
    pod_requests,
)

MOST_POINTS = 100


@dataclass(frozen=True)
class BinPackingArgs:
    """`resources` in pluginConfig: how much each resource counts."""

    resources: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.resources or min(self.resources.values()) <= 0:
            yield "resources", "needs at least one resource, and weights above 0"


class BinPacking(Plugin, Score, VectorScore):
    """The fuller the better."""

    args_type = BinPackingArgs

    def __init__(self, args: BinPackingArgs) -> None:
        self._weights = dict(args.resources)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        """For one node: what the scheduler asks when just a few nodes have changed since the last equal pod."""
        points = 0
        for resource, weight in self._weights.items():
            offered = node.allocatable(resource)
            if offered > 0:
                taken = node.non_zero_requested(resource) + self._request(pod, resource)
                points += weight * (MOST_POINTS * taken // offered)
        return min(points // sum(self._weights.values()), MOST_POINTS)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        """For all nodes at once: the same arithmetic on columns."""
        points = np.zeros(len(nodes), dtype=np.int64)
        for resource, weight in self._weights.items():
            offered = nodes.allocatable(resource)
            taken = nodes.non_zero_requested(resource) + self._request(pod, resource)
            # A node that does not offer the resource gets no points for it.
            points += weight * np.where(offered > 0, MOST_POINTS * taken // np.maximum(offered, 1), 0)
        return np.minimum(points // sum(self._weights.values()), MOST_POINTS)

    def sign(self, pod: Pod) -> Hashable:
        """All that is looked at of the pod: pods that want the same amounts share the column."""
        return tuple(self._request(pod, resource) for resource in self._weights)

    def _request(self, pod: Pod, resource: str) -> int:
        """What the pod asks for; as in kube-scheduler, a container that asks for nothing counts as a small one."""
        cpu, memory = non_zero_requests(pod.spec)
        usual = {"cpu": cpu, "memory": memory}
        return usual[resource] if resource in usual else pod_requests(pod.spec).get(resource, 0)
