"""What the pods below a priority take on each node, in columns: what preemption could give back at most.

`NodeTable.below(priority)` makes such columns on first use and keeps them up to date. `WithoutLowerPriority` is the
table as it would be without those pods; filters that look at amounts only can be asked about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pilotage.api.table import Codes, Mask, NodeTable, Scores
from pilotage.cluster.columns import Column
from pilotage.model import Node, Pod
from pilotage.model.node import Taint
from pilotage.model.pod_resources import assigned_non_zero_requests, assigned_requests

Amounts = tuple[Mapping[str, int], tuple[int, int]]
"""What a pod requests, and its cpu and memory as scoring counts them."""


class LowerPriority:
    """Sums over the pods of lower priority, one entry per row."""

    __slots__ = ("_capacity", "_requested", "_scored", "count", "priority")

    def __init__(self, priority: int, capacity: int) -> None:
        self.priority = priority
        self.count = Column(np.int64, capacity)
        self._capacity = capacity
        self._requested: dict[str, Column] = {}
        self._scored = {resource: Column(np.int64, capacity) for resource in ("cpu", "memory")}

    def account(self, row: int, amounts: Amounts, sign: int) -> None:
        """A pod of lower priority came (+1) or went (-1)."""
        requested, (cpu, memory) = amounts
        for resource, amount in requested.items():
            column = self._requested.get(resource)
            if column is None:
                column = self._requested[resource] = Column(np.int64, self._capacity)
            column.add(row, sign * amount)
        self._scored["cpu"].add(row, sign * cpu)
        self._scored["memory"].add(row, sign * memory)
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
        column = self._requested.get(resource)
        return 0 if column is None else column[row]

    def scored_at(self, row: int, resource: str) -> int:
        column = self._scored.get(resource)
        return self.requested_at(row, resource) if column is None else column[row]

    def requested(self, resource: str, size: int) -> Scores | int:
        column = self._requested.get(resource)
        return 0 if column is None else column.values(size)

    def scored(self, resource: str, size: int) -> Scores | int:
        column = self._scored.get(resource)
        return self.requested(resource, size) if column is None else column.values(size)

    def columns(self) -> Iterator[Column]:
        yield self.count
        yield from self._requested.values()
        yield from self._scored.values()

    def reserve(self, capacity: int) -> None:
        """Columns that are made from now on must be this long, too."""
        self._capacity = capacity

    def check(self, row: int, pods: Iterable[Pod]) -> None:
        """Verify the sums of a row; for tests."""
        lower = [pod for pod in pods if pod.priority < self.priority]
        assert self.count[row] == len(lower)
        for resource, column in self._requested.items():
            assert column[row] == sum(assigned_requests(pod).get(resource, 0) for pod in lower), resource
        scored = [sum(assigned_non_zero_requests(pod)[at] for pod in lower) for at in range(2)]
        assert [self._scored["cpu"][row], self._scored["memory"][row]] == scored


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

    def requested(self, resource: str) -> Scores:
        left: Scores = self._table.requested(resource) - self._gone.requested(resource, len(self))
        return left

    def free(self, resource: str) -> Scores:
        free: Scores = self.allocatable(resource) - self.requested(resource)
        return free

    def scored_request(self, resource: str) -> Scores:
        left: Scores = self._table.scored_request(resource) - self._gone.scored(resource, len(self))
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

    def column(self, name: str) -> NDArray[Any]:
        return self._table.column(name)
