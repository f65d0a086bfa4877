"""One node as a per-node plugin sees it: a window on a row of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilotage.cluster.node_table import NodeTable
from pilotage.model import Node, Pod
from pilotage.model.node import Taint


class RowView:
    """Implements `pilotage.api.NodeView` for a row of the table."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self._table = table
        self._row = row

    @property
    def name(self) -> str:
        return self._table.names[self._row]

    @property
    def node(self) -> Node:
        return self._table.node(self._row)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    @property
    def taints(self) -> Sequence[Taint]:
        return self.node.spec.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.spec.unschedulable

    @property
    def pods(self) -> Sequence[Pod]:
        return list(self._table.pods_on(self._row).values())

    @property
    def pod_count(self) -> int:
        return len(self._table.pods_on(self._row))

    def allocatable(self, resource: str) -> int:
        return self._table.allocatable_at(self._row, resource)

    def requested(self, resource: str) -> int:
        return self._table.requested_at(self._row, resource)

    def scored_request(self, resource: str) -> int:
        return self._table.scored_request_at(self._row, resource)
