"""What the pods below a priority take on each node, in columns: what preemption could give back at most.

`NodeTable.below(priority)` makes such columns on first use and keeps them up to date. `WithoutLowerPriority` is the
table as it would be without those pods; filters that look at amounts only can be asked about it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pilotage.api.table import Codes, Mask, NodeTable, Scores
from pilotage.cluster.columns import Amounts, Column
from pilotage.model import Node, Pod
from pilotage.model.node import Taint
from pilotage.model.pod_resources import assigned_non_zero_requests, assigned_requests

Requests = tuple[Mapping[str, int], tuple[int, int]]
"""What a pod requests, and its cpu and memory as scoring counts them."""

_SCORED = ("cpu", "memory")


class LowerPriority:
    """Sums over the pods of lower priority, one entry per row."""

    __slots__ = ("_requested", "_scored", "count", "priority")

    def __init__(self, priority: int, capacity: int) -> None:
        self.priority = priority
        self.count = Column(np.int64, capacity)
        self._requested = Amounts(capacity)
        self._scored = Amounts(capacity)

    def account(self, row: int, amounts: Requests, sign: int) -> None:
        """A pod of lower priority came (+1) or went (-1)."""
        requested, (cpu, memory) = amounts
        for resource, amount in requested.items():
            self._requested.add(row, resource, sign * amount)
        self._scored.add(row, "cpu", sign * cpu)
        self._scored.add(row, "memory", sign * memory)
        self.count.add(row, sign)

    def fill(self, row: int, pods: Iterable[Pod]) -> None:
        """Count the pods of a row for the first time."""
        requested: dict[str, int] = {}
        cpu = memory = count = 0
        for pod in pods:
            if pod.priority < self.priority:
                for resource, amount in assigned_requests(pod).items():
                    requested[resource] = requested.get(resource, 0) + amount
                scored = assigned_non_zero_requests(pod)
                cpu, memory, count = cpu + scored[0], memory + scored[1], count + 1
        if count:
            self.account(row, (requested, (cpu, memory)), 1)
            self.count.add(row, count - 1)

    def requested_at(self, row: int, resource: str) -> int:
        return self._requested.at(row, resource)

    def scored_at(self, row: int, resource: str) -> int:
        return (self._scored if resource in _SCORED else self._requested).at(row, resource)

    def requested(self, resource: str, size: int) -> Scores | int:
        return self._requested.column(resource, size) if resource in self._requested else 0

    def scored(self, resource: str, size: int) -> Scores | int:
        return self._scored.column(resource, size) if resource in _SCORED else self.requested(resource, size)

    def left_of(self, requested: Amounts, scored: Amounts, count: Column) -> tuple[Amounts, Amounts, Column]:
        """What is left of all pods' sums without these pods."""
        return requested.without(self._requested), scored.without(self._scored), count.without(self.count)

    def move(self, source: int, target: int) -> None:
        """Put what row `source` has into row `target`, and nothing into `source`."""
        for column in (self.count, self._requested, self._scored):
            column.move(source, target)

    def reserve(self, capacity: int) -> None:
        for column in (self.count, self._requested, self._scored):
            column.reserve(capacity)

    def check(self, row: int, pods: Iterable[Pod]) -> None:
        """Verify the sums of a row; for tests."""
        lower = [pod for pod in pods if pod.priority < self.priority]
        assert self.count[row] == len(lower)
        for resource in self._requested.names():
            total = sum(assigned_requests(pod).get(resource, 0) for pod in lower)
            assert self._requested.at(row, resource) == total, resource
        scored = [sum(assigned_non_zero_requests(pod)[at] for pod in lower) for at in range(2)]
        assert [self._scored.at(row, resource) for resource in _SCORED] == scored


class WithoutLowerPriority:
    """Implements `pilotage.api.NodeTable`: the nodes without their pods below a priority."""

    __slots__ = ("_gone", "_table")

    def __init__(self, table: NodeTable, gone: LowerPriority) -> None:
        self._table = table
        self._gone = gone

    def __len__(self) -> int:
        return len(self._table)

    @property
    def names(self) -> Sequence[str]:
        return self._table.names

    def allocatable(self, resource: str) -> Scores:
        return self._table.allocatable(resource)

    def is_offered(self, resource: str) -> bool:
        return self._table.is_offered(resource)

    def requested(self, resource: str) -> Scores:
        left: Scores = self._table.requested(resource) - self._gone.requested(resource, len(self))
        return left

    def free(self, resource: str) -> Scores:
        free: Scores = self.allocatable(resource) - self.requested(resource)
        return free

    def non_zero_requested(self, resource: str) -> Scores:
        left: Scores = self._table.non_zero_requested(resource) - self._gone.scored(resource, len(self))
        return left

    @property
    def pod_count(self) -> Scores:
        left: Scores = self._table.pod_count - self._gone.count.values(len(self))
        return left

    @property
    def unschedulable(self) -> Mask:
        return self._table.unschedulable

    def labels(self, key: str) -> tuple[Codes, Sequence[str]]:
        return self._table.labels(key)

    def has_label(self, key: str) -> bool:
        return self._table.has_label(key)

    def taint_sets(self) -> tuple[Codes, Sequence[tuple[Taint, ...]]]:
        return self._table.taint_sets()

    def rows_of(self, names: frozenset[str]) -> Mask:
        return self._table.rows_of(names)

    def node(self, row: int) -> Node:
        return self._table.node(row)

    def everywhere(self, value: bool) -> Mask:
        return self._table.everywhere(value)

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        return self._table.pick(column)

    def derived(self, key: Hashable, derive: Callable[[NodeTable], NDArray[Any]]) -> NDArray[Any]:
        return derive(self)
