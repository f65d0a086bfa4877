"""A table whose columns cannot be written, whatever table it is made of; and what nodes looked like before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pilotage.api.table import Codes, Mask, NodeTable, Scores
from pilotage.model import Node
from pilotage.model.node import Taint


class ReadOnlyTable:
    """Implements `pilotage.api.NodeTable`; a plugin that writes into a column gets an exception at that line."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._table.names)

    def allocatable(self, resource: str) -> Scores:
        return read_only(self._table.allocatable(resource))

    def is_offered(self, resource: str) -> bool:
        return self._table.is_offered(resource)

    def requested(self, resource: str) -> Scores:
        return read_only(self._table.requested(resource))

    def free(self, resource: str) -> Scores:
        return read_only(self._table.free(resource))

    def non_zero_requested(self, resource: str) -> Scores:
        return read_only(self._table.non_zero_requested(resource))

    @property
    def pod_count(self) -> Scores:
        return read_only(self._table.pod_count)

    @property
    def unschedulable(self) -> Mask:
        return read_only(self._table.unschedulable)

    def labels(self, key: str) -> tuple[Codes, Sequence[str]]:
        codes, values = self._table.labels(key)
        return read_only(codes), values

    def has_label(self, key: str) -> bool:
        return self._table.has_label(key)

    def taint_sets(self) -> tuple[Codes, Sequence[tuple[Taint, ...]]]:
        codes, sets = self._table.taint_sets()
        return read_only(codes), sets

    def rows_of(self, names: frozenset[str]) -> Mask:
        return self._table.rows_of(names)

    def node(self, row: int) -> Node:
        return self._table.node(row)

    def everywhere(self, value: bool) -> Mask:
        return self._table.everywhere(value)

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        return read_only(self._table.pick(column))

    def derived(self, key: Hashable, derive: Callable[[NodeTable], NDArray[Any]]) -> NDArray[Any]:
        return read_only(self._table.derived(key, derive))


def read_only(column: NDArray[Any]) -> NDArray[Any]:
    """The same values, not to be written."""
    view: NDArray[Any] = np.asarray(column).view()
    view.flags.writeable = False
    return view


def contents(nodes: NodeTable) -> dict[str, bytes]:
    """Everything in the Node objects of a table, by name."""
    return {nodes.names[row]: msgspec.json.encode(nodes.node(row)) for row in range(len(nodes))}
