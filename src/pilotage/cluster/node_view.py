"""One node as a per-node plugin sees it.

RowView       a window on a row of the table
DerivedNode   what all those have in common that are made from another one:
ThinnedNode   a row without the pods below a priority
ImaginedNode  any of these with some pods more and some pods fewer
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pilotage.api.views import NodeView
from pilotage.cluster.lower_priority import LowerPriority
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.model import Node, Pod
from pilotage.model.node import Taint
from pilotage.model.pod_resources import assigned_non_zero_requests, assigned_requests

_SCORED_WITH_DEFAULTS = ("cpu", "memory")


class RowView:
    """Implements `pilotage.api.NodeView` for a row of the table."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: ClusterNodeTable, row: int) -> None:
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
        # Not through other properties: per-node plugins ask this for every node and pod.
        return self._table.node(self._row).metadata.labels

    @property
    def taints(self) -> Sequence[Taint]:
        return self._table.node(self._row).spec.taints

    @property
    def unschedulable(self) -> bool:
        return self._table.node(self._row).spec.unschedulable

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

    def non_zero_requested(self, resource: str) -> int:
        table = self._table
        return (table.scored_at if resource in _SCORED_WITH_DEFAULTS else table.requested_at)(self._row, resource)


class DerivedNode:
    """A node made from another one: whatever a subclass does not say is as it is there."""

    __slots__ = ("_base", "allocatable")

    def __init__(self, base: NodeView) -> None:
        self._base = base
        # No pod changes what a node has: the caller gets to the row itself, however many nodes are in between.
        self.allocatable: Callable[[str], int] = base.allocatable

    @property
    def node(self) -> Node:
        return self._base.node

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @property
    def taints(self) -> Sequence[Taint]:
        return self.node.spec.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.spec.unschedulable

    @property
    def pods(self) -> Sequence[Pod]:
        return self._base.pods

    @property
    def pod_count(self) -> int:
        return self._base.pod_count

    def requested(self, resource: str) -> int:
        return self._base.requested(resource)

    def non_zero_requested(self, resource: str) -> int:
        return self._base.non_zero_requested(resource)


class ThinnedNode(DerivedNode):
    """A row without its pods below a priority; the sums of these are known, so that they need no walk."""

    __slots__ = ("_gone", "_row")

    def __init__(self, table: ClusterNodeTable, row: int, gone: LowerPriority) -> None:
        super().__init__(RowView(table, row))
        self._row = row
        self._gone = gone

    @property
    def pods(self) -> Sequence[Pod]:
        return [pod for pod in self._base.pods if pod.priority >= self._gone.priority]

    @property
    def pod_count(self) -> int:
        return self._base.pod_count - self._gone.count[self._row]

    def requested(self, resource: str) -> int:
        return self._base.requested(resource) - self._gone.requested_at(self._row, resource)

    def non_zero_requested(self, resource: str) -> int:
        return self._base.non_zero_requested(resource) - self._gone.scored_at(self._row, resource)


class ImaginedNode(DerivedNode):
    """A node with some pods more and some pods fewer: what preemption and nominated pods are tried on.

    Nothing is changed but this object; `add` and `remove` may be called again and again.
    """

    __slots__ = ("_added", "_delta", "_removed")

    def __init__(self, base: NodeView) -> None:
        super().__init__(base)
        self._added: dict[str, Pod] = {}
        self._removed: dict[str, Pod] = {}
        self._delta: dict[str, int] = {}

    def add(self, pod: Pod) -> None:
        if self._removed.pop(pod.uid, None) is None:
            self._added[pod.uid] = pod
        self._account(pod, 1)

    def remove(self, pod: Pod) -> None:
        """Without a pod that is on the node, or that was added."""
        if self._added.pop(pod.uid, None) is None:
            self._removed[pod.uid] = pod
        self._account(pod, -1)

    def _account(self, pod: Pod, sign: int) -> None:
        delta = self._delta
        for resource, amount in assigned_requests(pod).items():
            delta[resource] = delta.get(resource, 0) + sign * amount

    @property
    def pods(self) -> Sequence[Pod]:
        return [*(pod for pod in self._base.pods if pod.uid not in self._removed), *self._added.values()]

    @property
    def pod_count(self) -> int:
        return self._base.pod_count + len(self._added) - len(self._removed)

    def requested(self, resource: str) -> int:
        return self._base.requested(resource) + self._delta.get(resource, 0)

    def non_zero_requested(self, resource: str) -> int:
        if resource not in _SCORED_WITH_DEFAULTS:
            return self.requested(resource)
        at = _SCORED_WITH_DEFAULTS.index(resource)
        more = sum(assigned_non_zero_requests(pod)[at] for pod in self._added.values())
        less = sum(assigned_non_zero_requests(pod)[at] for pod in self._removed.values())
        return self._base.non_zero_requested(resource) + more - less
