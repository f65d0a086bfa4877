"""From where a volume can be reached: node affinity of volumes, judged by labels alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pilotage.api import Mask, NodeTable
from pilotage.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm
from pilotage.model.storage import PersistentVolume, TopologySelectorTerm
from pilotage.plugins.node_selection import term_mask

Place = tuple[str, str]
"""A label of nodes with its value."""

ELSEWHERE: Final[Place] = ("", "")
"""Stands for everything that cannot be said with one label."""


def required_affinity(volume: PersistentVolume) -> NodeSelector | None:
    return None if volume.spec.node_affinity is None else volume.spec.node_affinity.required


def affinity_matches(affinity: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a volume with this affinity can be used on a node with these labels."""
    if affinity is None:
        return True
    # As in kube-scheduler only labels count: no node has the name that a term may ask for.
    return any(term.problem() is None and term.matches(labels, "") for term in affinity.node_selector_terms)


def affinity_mask(affinity: NodeSelector, nodes: NodeTable) -> Mask:
    """The same question for all nodes at once."""
    mask = nodes.everywhere(False)
    for term in affinity.node_selector_terms:
        if _names_a_node(term):
            continue
        if term.match_fields and not term.match_expressions:
            mask |= term.problem() is None
        else:
            mask |= term_mask(NodeSelectorTerm(term.match_expressions), nodes) & (term.problem() is None)
    return mask


def _names_a_node(term: NodeSelectorTerm) -> bool:
    return any(requirement.operator == "In" for requirement in term.match_fields)


def keys_of(affinity: NodeSelector | None) -> Iterator[str]:
    """The labels that an affinity looks at."""
    for term in () if affinity is None else affinity.node_selector_terms:
        for requirement in term.match_expressions:
            yield requirement.key


def places_of(affinity: NodeSelector | None) -> tuple[Place, ...]:
    """The single labels that an affinity asks for; ELSEWHERE if it is not as simple as that."""
    terms = () if affinity is None else affinity.node_selector_terms
    if len(terms) != 1 or len(terms[0].match_expressions) != 1 or terms[0].match_fields:
        return (ELSEWHERE,)
    requirement = terms[0].match_expressions[0]
    if requirement.operator != "In" or requirement.problem() is not None:
        return (ELSEWHERE,)
    return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))


def selector_keys(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels
        yield from (expression.key for expression in selector.match_expressions)


def selector_places(selector: LabelSelector) -> tuple[Place, ...]:
    """Like `places_of`, for a label selector."""
    if len(selector.match_labels) == 1 and not selector.match_expressions:
        return tuple(selector.match_labels.items())
    if selector.match_labels or len(selector.match_expressions) != 1:
        return (ELSEWHERE,)
    expression = selector.match_expressions[0]
    if expression.operator != "In" or expression.problem() is not None:
        return (ELSEWHERE,)
    return tuple((expression.key, value) for value in dict.fromkeys(expression.values))


def topologies_match(terms: tuple[TopologySelectorTerm, ...], labels: Mapping[str, str]) -> bool:
    """Whether a node is in a topology that a storage class allows. No terms allow all, an empty term none."""
    if not terms:
        return True
    return any(
        all(labels.get(r.key) in r.values for r in term.match_label_expressions)
        for term in terms
        if term.match_label_expressions
    )
