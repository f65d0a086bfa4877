"""What is measured of a cluster while a simulation runs, from the columns of its nodes.

used       what pods have requested, as a part of what the nodes offer
stranded   what is free where it is of no use, as a part of what the nodes offer: averaged over the pods that have come
           so far, by what they request. To a pod, all that is free on a node where it does not fit is stranded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from pilotage.api.table import Scores
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.model import Pod
from pilotage.model.pod_resources import assigned_requests

_MOST_SHAPES: Final = 32
_COVERED: Final = 0.95
_MOST_REASONS: Final = 200
_MOST_MESSAGES: Final = 4096
OTHER_REASONS: Final = "other reasons"
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

    def saved(self) -> tuple[list[tuple[Shape, int]], int, list[tuple[Shape, float]]]:
        """What is known: counts, when shapes were chosen, and these."""
        return list(self._counts.items()), self._chosen_at, self._chosen

    def restore(self, counts: list[tuple[Shape, int]], chosen_at: int, chosen: list[tuple[Shape, float]]) -> None:
        self._counts = Counter(dict(counts))
        self._seen = self._counts.total()
        self._chosen_at, self._chosen = chosen_at, chosen

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


_LEAD: Final = re.compile(r"^\d+/\d+ nodes are available: ")
_PREEMPTION: Final = re.compile(r"\.? preemption: .*$", re.DOTALL)
_COUNT: Final = re.compile(r"(^|, )\d+ ")


def reason_kind(message: str) -> str:
    """What a message says without how many nodes it says it of, so that alike ones can be counted."""
    without = _PREEMPTION.sub("", _LEAD.sub("", message[:4096]))
    parts = _COUNT.sub(r"\1", without.rstrip(".")).split(", ")
    return ", ".join(sorted(set(parts)))[:200]


class RejectedFor(NamedTuple):
    """One reason, since the sample before."""

    reason: str
    attempts: int
    """How many attempts were in vain for it."""
    waiting: int
    """How many pods wait whose last attempt said so."""


class RejectionCounts:
    """Why pods are rejected, from sample to sample."""

    def __init__(self) -> None:
        self._reason_of: dict[str, str] = {}
        """By UID: of pods that wait, what their last attempt said."""
        self._waiting: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self._kinds: dict[str, str] = {}
        self._reported: dict[str, int] = {}

    def rejected(self, uid: str, message: str) -> None:
        """An attempt was in vain."""
        reason = self._kind(message)
        self._attempts[reason] += 1
        before = self._reason_of.get(uid)
        if before != reason:
            self.settled(uid)
            self._reason_of[uid] = reason
            self._waiting[reason] += 1

    def settled(self, uid: str) -> None:
        """The pod has a node, or is gone."""
        reason = self._reason_of.pop(uid, None)
        if reason is not None:
            self._waiting[reason] -= 1

    def take(self) -> list[RejectedFor]:
        """What has changed since this was asked last."""
        names = sorted(
            self._attempts.keys() | {name for name, n in self._waiting.items() if n != self._reported.get(name, 0)}
        )
        found = [RejectedFor(name, self._attempts[name], self._waiting[name]) for name in names]
        self._attempts.clear()
        self._reported = dict(+self._waiting)
        return found

    def saved(self) -> tuple[dict[str, str], dict[str, int], dict[str, int], dict[str, int]]:
        """Reasons by UID, pods that wait and attempts by reason, and how many waited when that was asked last."""
        return self._reason_of, self._waiting, self._attempts, self._reported

    def restore(
        self, reasons: dict[str, str], waiting: dict[str, int], attempts: dict[str, int], reported: dict[str, int]
    ) -> None:
        self._reason_of, self._reported = reasons, reported
        self._waiting, self._attempts = Counter(waiting), Counter(attempts)

    def _kind(self, message: str) -> str:
        known = self._kinds.get(message)
        if known is None:
            if len(self._kinds) > _MOST_MESSAGES:
                self._kinds.clear()
            known = reason_kind(message)
            if known not in self._waiting and len(self._waiting) >= _MOST_REASONS:
                known = OTHER_REASONS
            self._kinds[message] = known
        return known


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
