"""NodeAffinity: node selectors and node affinity, required and preferred."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec
import numpy as np

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Hint,
    Mask,
    NodeNames,
    NodeTable,
    NodeView,
    NormalizeScore,
    Plugin,
    PreFilter,
    PreScore,
    Reason,
    Refusal,
    Reject,
    Resource,
    Score,
    Scores,
    Sees,
    Skip,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.api.results import SKIP
from pilotage.model import Node, Pod
from pilotage.model.selectors import NodeSelectorTerm, PreferredSchedulingTerm
from pilotage.plugins.args import NodeAffinityArgs
from pilotage.plugins.node_selection import (
    node_matches,
    required_mask,
    required_terms,
    selector_mask,
    term_mask,
    term_matches,
)
from pilotage.plugins.normalize import by_maximum

_ENFORCED = Reason(
    "EnforcedAffinityMismatch", "node(s) didn't match scheduler-enforced node affinity", unresolvable=True
)
_MISMATCH = Reason("NodeAffinityMismatch", "node(s) didn't match Pod's node affinity/selector", unresolvable=True)
_CONFLICT = Reason("NodeAffinityConflict", "pod affinity terms conflict", unresolvable=True)


class NodeAffinity(Plugin, PreFilter, Filter, VectorFilter, PreScore, Score, VectorScore, NormalizeScore):
    name = "NodeAffinity"
    filter_sees = Sees.NODE
    args_type = NodeAffinityArgs

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity
        self._enforced = None if added is None else added.required
        self._added_preferred = () if added is None else added.preferred

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> NodeNames | Skip | Refusal | None:
        required = required_terms(pod)
        if required is None:
            return None if pod.spec.node_selector or self._enforced is not None else SKIP
        named = [_names_asked_for(term) for term in required.node_selector_terms]
        if not named or any(names is None for names in named):
            return None
        union = frozenset[str]().union(*(names for names in named if names is not None))
        return NodeNames(union) if union else Reject(_CONFLICT)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        if not self._is_enforced_on(node.node):
            return Reject(_ENFORCED)
        return None if node_matches(pod, node.node) else Reject(_MISMATCH)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        fitting = required_mask(pod, nodes)
        if self._enforced is None:
            yield ~fitting, _MISMATCH
            return
        enforced = selector_mask(self._enforced, nodes)
        yield ~enforced, _ENFORCED
        yield enforced & ~fitting, _MISMATCH

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        return None if self._preferred(pod) else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return sum(p.weight for p in self._preferred(pod) if term_matches(p.preference, node.node))

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for preferred in self._preferred(pod):
            scores[term_mask(preferred.preference, nodes)] += preferred.weight
        return scores

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return by_maximum(scores)

    def sign(self, pod: Pod) -> Hashable | None:
        affinity = pod.spec.affinity
        terms = b"" if affinity is None else msgspec.json.encode(affinity.node_affinity)
        return terms, tuple(sorted(pod.spec.node_selector.items()))

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if not self._matches(pod, new):
            return Hint.SKIP
        return Hint.SKIP if old is not None and self._matches(pod, old) else Hint.QUEUE

    def _matches(self, pod: Pod, node: Node) -> bool:
        return self._is_enforced_on(node) and node_matches(pod, node)

    def _is_enforced_on(self, node: Node) -> bool:
        enforced = self._enforced
        return enforced is None or any(term_matches(term, node) for term in enforced.node_selector_terms)

    def _preferred(self, pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
        """What the pod prefers and what the configuration adds for every pod."""
        return (*_preferred(pod), *self._added_preferred)


def _preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred


def _names_asked_for(term: NodeSelectorTerm) -> frozenset[str] | None:
    """The node names that a term restricts itself to; None if it does not."""
    asked = [set(r.values) for r in term.match_fields if r.key == "metadata.name" and r.operator == "In"]
    return frozenset(set.intersection(*asked)) if asked else None
