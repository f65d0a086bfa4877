"""TaintToleration: taints that the pod does not tolerate keep it away, or (PreferNoSchedule) make a node less liked.

Taints are judged once per distinct set of taints and spread to the nodes by their codes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

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
    Refusal,
    Reject,
    Resource,
    Score,
    Scores,
    Sees,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.model import Node, Pod
from pilotage.model.node import Taint
from pilotage.plugins.normalize import by_maximum
from pilotage.plugins.nothing_to_prepare import NothingBeforeFilter, NothingBeforeScore
from pilotage.plugins.tolerations import first_untolerated, is_tolerated, toleration_fragment

_UNTOLERATED = Reason("UntoleratedTaint", "node(s) had untolerated taint(s)", unresolvable=True)


class TaintToleration(
    Plugin, NothingBeforeFilter, Filter, VectorFilter, NothingBeforeScore, Score, VectorScore, NormalizeScore
):
    name = "TaintToleration"
    filter_sees = Sees.NODE

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        return None if first_untolerated(node.taints, pod.spec.tolerations) is None else Reject(_UNTOLERATED)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        codes, taint_sets = nodes.taint_sets()
        refused = [first_untolerated(taints, pod.spec.tolerations) is not None for taints in taint_sets]
        if any(refused):
            yield np.array(refused, dtype=np.bool_)[codes], _UNTOLERATED

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return _disliked(node.taints, pod)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        codes, taint_sets = nodes.taint_sets()
        disliked = np.array([_disliked(taints, pod) for taints in taint_sets], dtype=np.int64)
        return disliked[codes]

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return by_maximum(scores, reverse=True)

    def sign(self, pod: Pod) -> Hashable | None:
        return toleration_fragment(pod.spec.tolerations)

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        tolerations = pod.spec.tolerations
        was_closed = old is None or first_untolerated(old.spec.taints, tolerations) is not None
        is_open = first_untolerated(new.spec.taints, tolerations) is None
        return Hint.QUEUE if was_closed and is_open else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION)
    def after_own_tolerations(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE


def _disliked(taints: Sequence[Taint], pod: Pod) -> int:
    """How many PreferNoSchedule taints the pod does not tolerate."""
    if not taints:
        return 0
    fitting = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
    return sum(taint.effect == "PreferNoSchedule" and not is_tolerated(fitting, taint) for taint in taints)
