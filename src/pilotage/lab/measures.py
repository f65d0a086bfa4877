"""What is measured of a cluster while a simulation runs, from the columns of its nodes.

used       what pods have requested, as a part of what the nodes offer
stranded   what is free where it is of no use, as a part of what the nodes offer: averaged over the pods that have come
           so far, by what they request. To a pod, all that is free on a node where it does not fit is stranded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from pilotage.api.table import Scores
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.model import Pod
from pilotage.model.pod_resources import assigned_requests

_MOST_SHAPES: Final = 32
_COVERED: Final = 0.95
_NOT_MEASURED: Final = frozenset({"pods"})

Shape = tuple[tuple[str, int], ...]
"""Amounts by resource."""


class Shapes:
    """What pods request: the most frequent requests, as far as they cover nearly all pods."""

    def __init__(self) -> None:
        self._counts: Counter[Shape] = Counter()
        self._of: dict[int, tuple[Mapping[str, int], Shape]] = {}
        self._seen = 0
        self._chosen_at = 0
        self._chosen: list[tuple[Shape, float]] = []

    def note(self, pod: Pod) -> None:
        """A pod has come."""
        requests = assigned_requests(pod)
        known = self._of.get(id(requests))
        if known is None or known[0] is not requests:
            if len(self._of) > 4096:
                self._of.clear()
            known = self._of[id(requests)] = (requests, tuple(sorted(requests.items())))
        self._counts[known[1]] += 1
        self._seen += 1

    def typical(self) -> list[tuple[Shape, float]]:
        """Shapes with their share; chosen anew whenever a tenth more pods have come."""
        if self._seen > self._chosen_at * 1.1:
            self._chosen_at = self._seen
            chosen, covered = [], 0
            for shape, count in sorted(self._counts.items(), key=lambda one: (-one[1], one[0]))[:_MOST_SHAPES]:
                if covered >= _COVERED * self._seen:
                    break
                chosen.append((shape, count))
                covered += count
            self._chosen = [(shape, count / covered) for shape, count in chosen]
        return self._chosen


class Measures:
    """Measures one cluster; which resources are measured is decided when nodes are first there."""

    def __init__(self, nodes: ClusterNodeTable, shapes: Shapes) -> None:
        self._nodes = nodes
        self._shapes = shapes

    def resources(self, named: Iterable[str]) -> list[str]:
        """Those that are measured of the resources that nodes name: cpu and memory, then the others that they offer."""
        first = ["cpu", "memory"]
        others = sorted({*named} - {*first, *_NOT_MEASURED})
        return first + [name for name in others if self._nodes.allocatable(name).any()]

    def take(self, resources: list[str]) -> dict[str, float]:
        """All measures, by name."""
        nodes, free, offered = self._nodes, {}, {}
        found: dict[str, float] = {}
        for resource in resources:
            column = nodes.allocatable(resource)
            offered[resource] = float(column.sum())
            free[resource] = np.maximum(column - nodes.requested(resource), 0)
            used = offered[resource] - float(free[resource].sum())
            found[f"used_{resource}"] = _ratio(used, offered[resource])
        stranded = self._stranded(free)
        for resource in resources:
            found[f"stranded_{resource}"] = _ratio(stranded[resource], offered[resource])
        count = nodes.pod_count
        counts = {"running": count.sum(), "nodes": len(nodes), "nodes_used": (count > 0).sum()}
        return {**found, **{name: float(number) for name, number in counts.items()}}

    def _stranded(self, free: Mapping[str, Scores]) -> dict[str, float]:
        nodes, sums = self._nodes, dict.fromkeys(free, 0.0)
        has_room = nodes.pod_count < nodes.allocatable("pods")
        for shape, share in self._shapes.typical():
            fits = has_room
            for resource, amount in shape:
                fits = fits & (free[resource] >= amount if resource in free else nodes.free(resource) >= amount)
            for resource, column in free.items():
                sums[resource] += share * float(column[~fits].sum())
        return sums


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
