"""Node selectors over columns: a requirement is judged once per distinct label value, then spread to the nodes.

What users write may be long, so that work is done for what nodes have: labels that no node has are decided by one look,
terms with a single requirement are gathered by key before they are spread to the nodes, and of a term with many
requirements the last are asked of the few nodes that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pilotage.api import Budget, Mask, NodeTable, Scores
from pilotage.api.budget import UNLIMITED
from pilotage.model import Node, Pod
from pilotage.model.requirements import parse_int64
from pilotage.model.selectors import NodeSelector, NodeSelectorTerm
from pilotage.plugins.node_terms import LabelRequirement, NodeTerm, Terms, labels_wanted, term_of

_FEW: Final = 8
_ON_EXISTENCE: Final = ("Exists", "DoesNotExist")
_ON_VALUES: Final = ("In", "NotIn")
_ON_ORDER: Final = ("Gt", "Lt")
_NOWHERE: Final = -2
"""A code that no node has."""
_TERMS: Final = "node_selection/required terms"
_SELECTOR: Final = "node_selection/node selector"

_Tally = NDArray[np.int64]
"""Points per distinct value of a label, and a last entry for nodes without it: their code is -1."""


def required_mask(pod: Pod, nodes: NodeTable, budget: Budget = UNLIMITED) -> Mask:
    """Nodes that match the pod's nodeSelector and its required node affinity."""
    selection = _Selection(nodes, budget)
    mask = selection.all_of(_node_selector(pod)) if pod.spec.node_selector else None
    terms = usable_terms(pod)
    if mask is None:
        return nodes.everywhere(True) if terms is None else selection.any_of(terms.all)
    return mask if terms is None or not mask.any() else mask & selection.any_of(terms.all)


def any_mask(terms: Terms, nodes: NodeTable, budget: Budget = UNLIMITED) -> Mask:
    """Nodes that match any of these terms."""
    return _Selection(nodes, budget).any_of(terms.all)


def term_mask(term: NodeSelectorTerm, nodes: NodeTable) -> Mask:
    """Nodes that match all of a term; a term without requirements, or a malformed one, matches nothing."""
    made = term_of(term)
    return nodes.everywhere(False) if made is None else _Selection(nodes, UNLIMITED).all_of(made)


def term_points(terms: Iterable[tuple[NodeTerm, int]], nodes: NodeTable, budget: Budget = UNLIMITED) -> Scores:
    """For each node the sum of the weights of the terms that it matches."""
    return _Selection(nodes, budget).points(terms)


def node_matches(pod: Pod, node: Node) -> bool:
    """Whether one node matches the pod's nodeSelector and its required node affinity."""
    # Plain loops: a hint asks this for every class of waiting pods whenever a label of a node changes.
    labels = node.metadata.labels
    for key, value in pod.spec.node_selector.items():
        if labels.get(key) != value:
            return False
    terms = usable_terms(pod)
    return terms is None or terms.match(node)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """A malformed term matches nothing."""
    return term.problem() is None and term.matches(node.labels, node.name)


def required_terms(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required


def usable_terms(pod: Pod) -> Terms | None:
    """The required terms that are well formed; None if the pod requires nothing."""
    memo = pod.spec.memo
    if _TERMS not in memo:
        required = required_terms(pod)
        memo[_TERMS] = None if required is None else Terms(required.node_selector_terms)
    terms: Terms | None = memo[_TERMS]
    return terms


def _node_selector(pod: Pod) -> NodeTerm:
    known: NodeTerm | None = pod.spec.memo.get(_SELECTOR)
    if known is None:
        known = pod.spec.memo[_SELECTOR] = labels_wanted(pod.spec.node_selector)
    return known


class _Selection:
    """Terms judged over the nodes of one table."""

    def __init__(self, nodes: NodeTable, budget: Budget) -> None:
        self._nodes = nodes
        self._budget = budget
        self._step = 1 + len(nodes) // 256
        """The cost of one operation on a column, in steps of the budget."""
        self._numbers_of: dict[str, tuple[Scores, Mask]] = {}

    def any_of(self, terms: Sequence[NodeTerm]) -> Mask:
        """Nodes that match one of the terms."""
        if len(terms) == 1:
            return self.all_of(terms[0])
        simple = [(term, 1) for term in terms if term.is_simple]
        mask: Mask = self.points(simple) > 0
        for term in terms if len(simple) < len(terms) else ():
            if not term.is_simple:
                if mask.all():
                    break
                self._budget.spend(self._step)
                mask |= self.all_of(term)
        return mask

    def points(self, terms: Iterable[tuple[NodeTerm, int]]) -> Scores:
        """For each node the weights of the terms that it matches."""
        points = np.zeros(len(self._nodes), dtype=np.int64)
        tallies: dict[str, _Tally] = {}
        by_name: dict[str, int] = {}
        compared: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for term, weight in terms:
            self._budget.spend()
            if not term.is_simple:
                if self._is_possible(term):
                    points[self.all_of(term)] += weight
            elif term.labels and term.labels[0].operator in _ON_ORDER:
                wanted = term.labels[0]
                compared.setdefault((wanted.key, wanted.operator), []).append((wanted.bound, weight))
            elif term.labels:
                self._tally(tallies, term.labels[0], weight)
            else:
                for name in term.names or ():
                    by_name[name] = by_name.get(name, 0) + weight
        for (key, operator), bounds in compared.items():
            if self._nodes.has_label(key):
                self._compare(self._tally_of(tallies, key), key, operator, bounds)
        for key, tally in tallies.items():
            points += tally[self._nodes.labels(key)[0]]
        if by_name:
            points += np.array([by_name.get(name, 0) for name in self._nodes.names], dtype=np.int64)
        return points

    def all_of(self, term: NodeTerm) -> Mask:
        """Nodes that match all of a term."""
        if not self._is_possible(term):
            return self._nodes.everywhere(False)
        mask = self._nodes.everywhere(True) if term.names is None else self._nodes.rows_of(term.names)
        if term.other_names:
            mask &= ~self._nodes.rows_of(term.other_names)
        asked = [wanted for wanted in term.labels if self._nodes.has_label(wanted.key)]
        for place, wanted in enumerate(asked):
            self._budget.spend(self._step)
            if np.count_nonzero(mask) <= _FEW:
                return self._one_by_one(mask, asked[place:])
            mask &= self._holds(wanted)
        return mask

    def _is_possible(self, term: NodeTerm) -> bool:
        """False if no node has a label that the term needs."""
        has_label = self._nodes.has_label
        self._budget.spend(len(term.labels) // 8)
        for wanted in term.labels:  # noqa: SIM110 (there may be thousands, of which most are absent)
            if wanted.needs_label and not has_label(wanted.key):
                return False
        return True

    def _one_by_one(self, mask: Mask, asked: Sequence[LabelRequirement]) -> Mask:
        """The same for the few nodes that are left."""
        for row in np.flatnonzero(mask).tolist():
            labels = self._nodes.node(row).metadata.labels
            self._budget.spend(len(asked) // 4)
            mask[row] = all(wanted.holds(labels.get(wanted.key)) for wanted in asked)
        return mask

    def _holds(self, wanted: LabelRequirement) -> Mask:
        """Nodes that fulfil one requirement."""
        codes, values = self._nodes.labels(wanted.key)
        if wanted.operator in _ON_EXISTENCE:
            return np.greater_equal(codes, 0) if wanted.operator == "Exists" else np.less(codes, 0)
        if len(wanted.values) == 1 and wanted.operator in _ON_VALUES:
            code = next(_codes_of(wanted.values, values), _NOWHERE)
            return np.equal(codes, code) if wanted.operator == "In" else np.not_equal(codes, code)
        tally = np.zeros(len(values) + 1, dtype=np.int64)
        self._add(tally, wanted, values, 1)
        return np.greater(tally[codes], 0)

    def _tally(self, tallies: dict[str, _Tally], wanted: LabelRequirement, weight: int) -> None:
        if wanted.needs_label and not self._nodes.has_label(wanted.key):
            return
        self._add(self._tally_of(tallies, wanted.key), wanted, self._nodes.labels(wanted.key)[1], weight)

    def _tally_of(self, tallies: dict[str, _Tally], key: str) -> _Tally:
        tally = tallies.get(key)
        if tally is None:
            self._budget.spend(self._step)
            tally = tallies[key] = np.zeros(len(self._nodes.labels(key)[1]) + 1, dtype=np.int64)
        return tally

    def _add(self, tally: _Tally, wanted: LabelRequirement, values: Sequence[str], weight: int) -> None:
        """Give `weight` to the values that fulfil a requirement."""
        match wanted.operator:
            case "In":
                for code in _codes_of(wanted.values, values):
                    tally[code] += weight
                return
            case "NotIn":
                tally += weight
                for code in _codes_of(wanted.values, values):
                    tally[code] -= weight
            case "Exists":
                tally[:-1] += weight
            case "DoesNotExist":
                tally[-1] += weight
                return
            case _:
                self._compare(tally, wanted.key, wanted.operator, [(wanted.bound, weight)])
        self._budget.spend(self._step)

    def _compare(self, tally: _Tally, key: str, operator: str, bounds: list[tuple[int, int]]) -> None:
        """Give the weights of all bounds that a value is above (Gt) or below (Lt), however many there are."""
        numbers, are_numbers = self._numbers(key)
        bounds.sort()
        ordered = np.array([bound for bound, _ in bounds], dtype=np.int64)
        sums = np.cumsum([0, *(weight for _, weight in bounds)])
        if operator == "Gt":
            given = sums[np.searchsorted(ordered, numbers, side="left")]
        else:
            given = sums[-1] - sums[np.searchsorted(ordered, numbers, side="right")]
        tally[:-1] += np.where(are_numbers, given, 0)

    def _numbers(self, key: str) -> tuple[Scores, Mask]:
        """The values of a label as numbers, and which of them are any."""
        known = self._numbers_of.get(key)
        if known is None:
            values = self._nodes.labels(key)[1]
            self._budget.spend(len(values) // 2)
            parsed = [parse_int64(value) for value in values]
            numbers = np.array([number or 0 for number in parsed], dtype=np.int64)
            known = numbers, np.array([number is not None for number in parsed], dtype=np.bool_)
            self._numbers_of[key] = known
        return known


def _codes_of(wanted: Collection[str], values: Sequence[str]) -> Iterator[int]:
    """The codes of those of the wanted values that occur."""
    if len(wanted) > len(values):
        yield from (code for code, value in enumerate(values) if value in wanted)
        return
    for value in wanted:
        try:
            yield values.index(value)
        except ValueError:
            continue
