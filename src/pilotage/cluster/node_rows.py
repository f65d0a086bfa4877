"""A table of just some nodes: the same columns, picked by row.

Vectorised plugins are asked again about the nodes that changed since their last answer, or about the feasible ones
only; they cannot see the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pilotage.api.table import Codes, Mask, NodeTable, Scores
from pilotage.api.views import NodeView
from pilotage.model import Node
from pilotage.model.node import Taint


class NodeRows:
    """Rows of another table, in the given order."""

    __slots__ = ("_at", "_picked", "_rows", "_table")

    def __init__(self, table: NodeTable, rows: NDArray[np.int64]) -> None:
        self._table = table
        self._rows = rows
        # Most often it is one row that has changed: a slice of a column costs a fraction of a picked copy.
        self._at: slice | NDArray[np.int64] = slice(first := rows.item(0), first + 1) if len(rows) == 1 else rows
        self._picked: dict[tuple[str, str], Scores] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> Sequence[str]:
        all_names = self._table.names
        return [all_names[row] for row in self._rows]

    def allocatable(self, resource: str) -> Scores:
        return self._pick("allocatable", resource, self._table.allocatable)

    def is_offered(self, resource: str) -> bool:
        return self._table.is_offered(resource)

    def requested(self, resource: str) -> Scores:
        return self._pick("requested", resource, self._table.requested)

    def free(self, resource: str) -> Scores:
        free: Scores = self.allocatable(resource) - self.requested(resource)
        return free

    def non_zero_requested(self, resource: str) -> Scores:
        return self._pick("scored", resource, self._table.non_zero_requested)

    def _pick(self, fact: str, resource: str, column: Callable[[str], Scores]) -> Scores:
        """Several plugins ask for the same columns: each is picked once."""
        known = self._picked.get((fact, resource))
        if known is None:
            known = self._picked[(fact, resource)] = column(resource)[self._at]
        return known

    @property
    def pod_count(self) -> Scores:
        return self._table.pod_count[self._at]

    @property
    def unschedulable(self) -> Mask:
        return self._table.unschedulable[self._at]

    def labels(self, key: str) -> tuple[Codes, Sequence[str]]:
        codes, values = self._table.labels(key)
        return codes[self._at], values

    def has_label(self, key: str) -> bool:
        return self._table.has_label(key)

    def taint_sets(self) -> tuple[Codes, Sequence[tuple[Taint, ...]]]:
        codes, sets = self._table.taint_sets()
        return codes[self._at], sets

    def rows_of(self, names: frozenset[str]) -> Mask:
        return self._table.rows_of(names)[self._at]

    def node(self, row: int) -> Node:
        return self._table.node(int(self._rows[row]))

    def everywhere(self, value: bool) -> Mask:
        return np.full(len(self._rows), value, dtype=np.bool_)

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        return self._table.pick(column)[self._at]

    def derived(self, key: Hashable, derive: Callable[[NodeTable], NDArray[Any]]) -> NDArray[Any]:
        return self._table.derived(key, derive)[..., self._at]


class ViewRows:
    """One row whose amounts are those of a view: a node as it would be, for filters that know columns only."""

    __slots__ = ("_rows", "_view")

    def __init__(self, table: NodeTable, row: int, view: NodeView) -> None:
        self._rows = NodeRows(table, np.array([row], dtype=np.int64))
        self._view = view

    def __len__(self) -> int:
        return 1

    @property
    def names(self) -> Sequence[str]:
        return self._rows.names

    def allocatable(self, resource: str) -> Scores:
        return self._rows.allocatable(resource)

    def is_offered(self, resource: str) -> bool:
        return self._rows.is_offered(resource)

    def requested(self, resource: str) -> Scores:
        return np.array([self._view.requested(resource)], dtype=np.int64)

    def free(self, resource: str) -> Scores:
        free: Scores = self.allocatable(resource) - self.requested(resource)
        return free

    def non_zero_requested(self, resource: str) -> Scores:
        return np.array([self._view.non_zero_requested(resource)], dtype=np.int64)

    @property
    def pod_count(self) -> Scores:
        return np.array([self._view.pod_count], dtype=np.int64)

    @property
    def unschedulable(self) -> Mask:
        return self._rows.unschedulable

    def labels(self, key: str) -> tuple[Codes, Sequence[str]]:
        return self._rows.labels(key)

    def has_label(self, key: str) -> bool:
        return self._rows.has_label(key)

    def taint_sets(self) -> tuple[Codes, Sequence[tuple[Taint, ...]]]:
        return self._rows.taint_sets()

    def rows_of(self, names: frozenset[str]) -> Mask:
        return self._rows.rows_of(names)

    def node(self, row: int) -> Node:
        return self._rows.node(row)

    def everywhere(self, value: bool) -> Mask:
        return self._rows.everywhere(value)

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        return self._rows.pick(column)

    def derived(self, key: Hashable, derive: Callable[[NodeTable], NDArray[Any]]) -> NDArray[Any]:
        return derive(self)
