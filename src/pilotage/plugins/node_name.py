"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from pilotage.api import (
    Action,
    ClusterEvent,
    CycleState,
    Filter,
    Mask,
    NodeNames,
    NodeTable,
    NodeView,
    Plugin,
    PreFilter,
    Reason,
    Reject,
    Rejection,
    Resource,
    Sees,
    Skip,
    VectorFilter,
)
from pilotage.model import Pod

_MISMATCH = Reason("NodeNameMismatch", "node(s) didn't match the requested node name", unresolvable=True)


class NodeName(Plugin, PreFilter, Filter, VectorFilter):
    name = "NodeName"
    filter_sees = Sees.NODE
    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD),)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> NodeNames | Skip | Rejection | None:
        return NodeNames(frozenset([pod.node_name])) if pod.node_name else None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return Reject(_MISMATCH) if pod.node_name and pod.node_name != node.name else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        if pod.node_name:
            yield ~nodes.rows_of(frozenset([pod.node_name])), _MISMATCH

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.node_name
