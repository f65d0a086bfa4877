"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Resource,
    Sees,
    VectorFilter,
    on_event,
)
from pilotage.api.points import NothingBeforeFilter
from pilotage.model import Node, Pod
from pilotage.model.node import Taint
from pilotage.plugins.tolerations import is_tolerated

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_UNSCHEDULABLE = Reason("NodeUnschedulable", "node(s) were unschedulable", unresolvable=True)


class NodeUnschedulable(Plugin, NothingBeforeFilter, Filter, VectorFilter):
    name = "NodeUnschedulable"
    filter_sees = Sees.NODE
    pure_hints = True

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if not node.unschedulable or is_tolerated(pod.spec, _CORDON):
            return None
        return Reject(_UNSCHEDULABLE)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        if not is_tolerated(pod.spec, _CORDON):
            yield nodes.unschedulable, _UNSCHEDULABLE

    def sign(self, pod: Pod) -> Hashable | None:
        return is_tolerated(pod.spec, _CORDON)

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        was_closed = old is None or old.spec.unschedulable
        return Hint.QUEUE if was_closed and not new.spec.unschedulable else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION)
    def after_own_tolerations(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE if is_tolerated(new.spec, _CORDON) else Hint.SKIP
