"""One node as a per-node plugin sees it: a window on a row of the table, or a node as it would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilotage.api.views import NodeView
from pilotage.cluster.node_table import NodeTable
from pilotage.model import Node, Pod
from pilotage.model.node import Taint
from pilotage.model.pod_resources import assigned_non_zero_requests, assigned_requests


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


class ImaginedNode:
    """A node with some pods more and some pods fewer: what preemption and nominated pods are tried on.

    Nothing is changed but this object; `add` and `remove` may be called again and again.
    """

    def __init__(self, base: NodeView) -> None:
        self._base = base
        self._pods = {pod.uid: pod for pod in base.pods}
        self._delta: dict[str, int] = {}
        self._scored_delta = {"cpu": 0, "memory": 0}

    def add(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        self._account(pod, 1)

    def remove(self, pod: Pod) -> None:
        if self._pods.pop(pod.uid, None) is not None:
            self._account(pod, -1)

    def _account(self, pod: Pod, sign: int) -> None:
        for resource, amount in assigned_requests(pod).items():
            self._delta[resource] = self._delta.get(resource, 0) + sign * amount
        cpu, memory = assigned_non_zero_requests(pod)
        self._scored_delta["cpu"] += sign * cpu
        self._scored_delta["memory"] += sign * memory

    @property
    def name(self) -> str:
        return self._base.name

    @property
    def node(self) -> Node:
        return self._base.node

    @property
    def labels(self) -> Mapping[str, str]:
        return self._base.labels

    @property
    def taints(self) -> Sequence[Taint]:
        return self._base.taints

    @property
    def unschedulable(self) -> bool:
        return self._base.unschedulable

    @property
    def pods(self) -> Sequence[Pod]:
        return list(self._pods.values())

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    def allocatable(self, resource: str) -> int:
        return self._base.allocatable(resource)

    def requested(self, resource: str) -> int:
        return self._base.requested(resource) + self._delta.get(resource, 0)

    def scored_request(self, resource: str) -> int:
        delta = self._scored_delta if resource in self._scored_delta else self._delta
        return self._base.scored_request(resource) + delta.get(resource, 0)
