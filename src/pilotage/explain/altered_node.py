"""A node as it would be after one change: with other labels or taints, not cordoned, or without any pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pilotage.api.views import NodeView
from pilotage.cluster.node_view import DerivedNode
from pilotage.model import Node, Pod
from pilotage.model.node import NodeSpec


class AlteredNode(DerivedNode):
    """Implements `pilotage.api.NodeView`: a node whose object is exchanged, with its pods or without."""

    def __init__(self, base: NodeView, node: Node, *, is_empty: bool = False) -> None:
        super().__init__(base)
        self._node = node
        self._is_empty = is_empty

    @property
    def node(self) -> Node:
        return self._node

    @property
    def pods(self) -> Sequence[Pod]:
        return () if self._is_empty else self._base.pods

    @property
    def pod_count(self) -> int:
        return 0 if self._is_empty else self._base.pod_count

    def requested(self, resource: str) -> int:
        return 0 if self._is_empty else self._base.requested(resource)

    def non_zero_requested(self, resource: str) -> int:
        return 0 if self._is_empty else self._base.non_zero_requested(resource)


def uncordoned(node: Node) -> Node:
    return msgspec.structs.replace(node, spec=_spec(node, unschedulable=False))


def labelled(node: Node, labels: Mapping[str, str]) -> Node:
    metadata = msgspec.structs.replace(node.metadata, labels={**node.labels, **labels})
    return msgspec.structs.replace(node, metadata=metadata)


def renamed(node: Node, name: str) -> Node:
    """A new node of the same kind: its hostname label follows its name."""
    labels = {**node.labels, "kubernetes.io/hostname": name}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, name=name, labels=labels))


def _spec(node: Node, **changes: object) -> NodeSpec:
    changed: NodeSpec = msgspec.structs.replace(node.spec, **changes)
    return changed
