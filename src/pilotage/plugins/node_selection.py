"""Node selectors over columns: a requirement is judged once per distinct label value, then spread to the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pilotage.api import Mask, NodeTable
from pilotage.model import Node, Pod
from pilotage.model.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

_FEW: Final = 8
_NOWHERE: Final = -2
_TERMS: Final = "node_selection/usable terms"


def required_mask(pod: Pod, nodes: NodeTable) -> Mask:
    """Nodes that match the pod's nodeSelector and its required node affinity."""
    mask = labels_mask(pod.spec.node_selector, nodes)
    required = required_terms(pod)
    return mask if required is None else mask & selector_mask(required, nodes)


def required_terms(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required


def selector_mask(selector: NodeSelector, nodes: NodeTable) -> Mask:
    """Nodes that match any term."""
    mask = nodes.everywhere(False)
    for term in selector.node_selector_terms:
        mask |= term_mask(term, nodes)
    return mask


def term_mask(term: NodeSelectorTerm, nodes: NodeTable) -> Mask:
    """Nodes that match all of a term; a term without requirements, or a malformed one, matches nothing."""
    if (not term.match_expressions and not term.match_fields) or term.problem() is not None:
        return nodes.everywhere(False)
    mask = nodes.everywhere(True)
    for requirement in term.match_expressions:
        mask &= _requirement_mask(requirement, nodes)
    for requirement in term.match_fields:
        named = nodes.rows_of(frozenset(requirement.values))
        mask &= named if requirement.operator == "In" else ~named
    return mask


def labels_mask(wanted: Mapping[str, str], nodes: NodeTable) -> Mask:
    """Nodes that carry all these labels."""
    mask = nodes.everywhere(True)
    for key, value in wanted.items():
        codes, values = nodes.labels(key)
        mask &= codes == _code_of(value, values)
    return mask


def _requirement_mask(requirement: NodeSelectorRequirement, nodes: NodeTable) -> Mask:
    codes, values = nodes.labels(requirement.key)
    if requirement.operator == "In" and len(requirement.values) <= _FEW and requirement.problem() is None:
        # A label such as the host name has as many values as there are nodes: look for the few that are asked for.
        mask = nodes.everywhere(False)
        for value in requirement.values:
            mask |= codes == _code_of(value, values)
        return mask
    # The last entry answers for nodes without the label: their code is -1.
    verdicts = [requirement.matches({requirement.key: value}) for value in values]
    verdicts.append(requirement.matches({}))
    return np.array(verdicts, dtype=np.bool_)[codes]


def _code_of(value: str, values: Sequence[str]) -> int:
    """The code of a label value; one that no node has if it does not occur."""
    try:
        return values.index(value)
    except ValueError:
        return _NOWHERE


def node_matches(pod: Pod, node: Node) -> bool:
    """The same question for one node."""
    # Plain loops: a hint asks this for every class of waiting pods whenever a label of a node changes.
    labels = node.metadata.labels
    for key, value in pod.spec.node_selector.items():
        if labels.get(key) != value:
            return False
    terms = _usable_terms(pod)
    if terms is None:
        return True
    for term in terms:  # noqa: SIM110 (see above)
        if term.matches(labels, node.metadata.name):
            return True
    return False


def _usable_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...] | None:
    """The required terms that are well formed; None if the pod requires nothing."""
    memo = pod.spec.memo
    if _TERMS not in memo:
        required = required_terms(pod)
        usable = None if required is None else tuple(t for t in required.node_selector_terms if t.problem() is None)
        memo[_TERMS] = usable
    terms: tuple[NodeSelectorTerm, ...] | None = memo[_TERMS]
    return terms


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """A malformed term matches nothing."""
    return term.problem() is None and term.matches(node.labels, node.name)
