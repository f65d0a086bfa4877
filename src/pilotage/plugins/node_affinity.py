"""NodeAffinity: node selectors and node affinity, required and preferred."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

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
    Reason,
    Reject,
    Rejection,
    Resource,
    Score,
    Scores,
    Sees,
    Skip,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.api.points import NothingBeforeScore
from pilotage.api.results import SKIP
from pilotage.model import Node, Pod
from pilotage.model.selectors import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from pilotage.plugins.args import NodeAffinityArgs
from pilotage.plugins.fragments import fragment_of, fragment_of_text
from pilotage.plugins.node_selection import any_mask, node_matches, required_mask, required_terms, term_points
from pilotage.plugins.node_terms import NodeTerm, Terms, term_of
from pilotage.plugins.normalize import by_maximum

_ENFORCED = Reason(
    "EnforcedAffinityMismatch", "node(s) didn't match scheduler-enforced node affinity", unresolvable=True
)
_MISMATCH = Reason("NodeAffinityMismatch", "node(s) didn't match Pod's node affinity/selector", unresolvable=True)
_PREFERRED: Final = "NodeAffinity/preferred terms"
_NAMES: Final = "NodeAffinity/names"
_CONFLICT = Reason("NodeAffinityConflict", "pod affinity terms conflict", unresolvable=True)


class NodeAffinity(Plugin, PreFilter, Filter, VectorFilter, NothingBeforeScore, Score, VectorScore, NormalizeScore):
    name = "NodeAffinity"
    filter_sees = Sees.NODE
    score_sees = Sees.NODE
    pure_hints = True
    args_type = NodeAffinityArgs

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity
        required = None if added is None else added.required
        self._enforced = None if required is None else Terms(required.node_selector_terms)
        self._added_preferred = () if added is None else _weighted(added.preferred)

    def may_filter(self, pod: Pod) -> bool:
        return required_terms(pod) is not None or bool(pod.spec.node_selector) or self._enforced is not None

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> NodeNames | Skip | Rejection | None:
        required = required_terms(pod)
        if required is None:
            return None if self.may_filter(pod) else SKIP
        names = _names_of(pod, required)
        if names is None:
            return None
        return NodeNames(names) if names else Reject(_CONFLICT)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if not self._is_enforced_on(node.node):
            return Reject(_ENFORCED)
        if (steps := _length(pod) // 16) > 0:
            state.budget.spend(steps)
        return None if node_matches(pod, node.node) else Reject(_MISMATCH)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        fitting = required_mask(pod, nodes, state.budget)
        if self._enforced is None:
            yield ~fitting, _MISMATCH
            return
        enforced = any_mask(self._enforced, nodes)
        yield ~enforced, _ENFORCED
        yield enforced & ~fitting, _MISMATCH

    def may_score(self, pod: Pod) -> bool:
        return bool(_asked_preferred(pod) or self._added_preferred)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        labels, name = node.labels, node.name
        preferred = self._preferred(pod)
        state.budget.spend(len(preferred) // 4)
        return sum([weight for term, weight in preferred if term.matches(labels, name)])

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return term_points(self._preferred(pod), nodes, state.budget)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return by_maximum(scores)

    def sign(self, pod: Pod) -> Hashable | None:
        affinity = pod.spec.affinity
        terms = b"" if affinity is None else msgspec.json.encode(affinity.node_affinity)
        return fragment_of_text(terms), fragment_of(tuple(sorted(pod.spec.node_selector.items())))

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if not self._matches(pod, new):
            return Hint.SKIP
        return Hint.SKIP if old is not None and self._matches(pod, old) else Hint.QUEUE

    def _matches(self, pod: Pod, node: Node) -> bool:
        return self._is_enforced_on(node) and node_matches(pod, node)

    def _is_enforced_on(self, node: Node) -> bool:
        return self._enforced is None or self._enforced.match(node)

    def _preferred(self, pod: Pod) -> tuple[tuple[NodeTerm, int], ...]:
        """What the pod prefers and what the configuration adds for every pod."""
        own: tuple[tuple[NodeTerm, int], ...] | None = pod.spec.memo.get(_PREFERRED)
        if own is None:
            own = pod.spec.memo[_PREFERRED] = _weighted(_asked_preferred(pod))
        return (*own, *self._added_preferred) if self._added_preferred else own


def _asked_preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred


def _weighted(preferred: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[NodeTerm, int], ...]:
    """The terms that are well formed, with their weights."""
    made = [(term_of(one.preference), one.weight) for one in preferred]
    return tuple([(term, weight) for term, weight in made if term is not None])


def _names_of(pod: Pod, required: NodeSelector) -> frozenset[str] | None:
    """The names of all nodes that the required terms leave; None if one of them leaves it open. Once per spec."""
    memo = pod.spec.memo
    if _NAMES not in memo:
        memo[_NAMES] = _union([_names_asked_for(term) for term in required.node_selector_terms])
    names: frozenset[str] | None = memo[_NAMES]
    return names


def _union(named: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    sets = [names for names in named if names is not None]
    return frozenset[str]().union(*sets) if sets and len(sets) == len(named) else None


def _length(pod: Pod) -> int:
    """How much there is to look at for one node."""
    required = required_terms(pod)
    return len(pod.spec.node_selector) + (0 if required is None else len(required.node_selector_terms))


def _names_asked_for(term: NodeSelectorTerm) -> frozenset[str] | None:
    """The node names that a term restricts itself to; None if it does not."""
    asked = [set(r.values) for r in term.match_fields if r.key == "metadata.name" and r.operator == "In"]
    return frozenset(set.intersection(*asked)) if asked else None
