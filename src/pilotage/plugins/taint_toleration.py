"""TaintToleration: taints that the pod does not tolerate keep it away, or (PreferNoSchedule) make a node less liked.

Taints are judged once per distinct set of taints and spread to the nodes by their codes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    NormalizeScore,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Resource,
    Score,
    Scores,
    Sees,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.api.points import NothingBeforeFilter, NothingBeforeScore
from pilotage.model import Node, Pod
from pilotage.plugins.normalize import by_maximum
from pilotage.plugins.tolerations import first_untolerated, toleration_fragment, untolerated_preferences

_UNTOLERATED = Reason("UntoleratedTaint", "node(s) had untolerated taint(s)", unresolvable=True)


class TaintToleration(
    Plugin, NothingBeforeFilter, Filter, VectorFilter, NothingBeforeScore, Score, VectorScore, NormalizeScore
):
    name = "TaintToleration"
    filter_sees = Sees.NODE
    score_sees = Sees.NODE
    pure_hints = True

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if first_untolerated(node.taints, pod.spec) is None else Reject(_UNTOLERATED)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        codes, taint_sets = nodes.taint_sets()
        rejected = []
        for taints in taint_sets:
            state.budget.spend(len(taints))
            rejected.append(first_untolerated(taints, pod.spec) is not None)
        if any(rejected):
            yield np.array(rejected)[codes], _UNTOLERATED

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return untolerated_preferences(node.taints, pod.spec)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        codes, taint_sets = nodes.taint_sets()
        disliked = []
        for taints in taint_sets:
            state.budget.spend(len(taints))
            disliked.append(untolerated_preferences(taints, pod.spec))
        if not any(disliked):
            return np.zeros(len(nodes), dtype=np.int64)
        return np.array(disliked, dtype=np.int64)[codes]

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return by_maximum(scores, reverse=True)

    def sign(self, pod: Pod) -> Hashable | None:
        return toleration_fragment(pod.spec.tolerations)

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if first_untolerated(new.spec.taints, pod.spec) is not None:
            return Hint.SKIP
        was_closed = old is None or first_untolerated(old.spec.taints, pod.spec) is not None
        return Hint.QUEUE if was_closed else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION)
    def after_own_tolerations(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE
