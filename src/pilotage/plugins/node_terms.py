"""Node selector terms, made ready once per pod spec.

A term that Kubernetes would reject matches nothing and is left out. Values are sets and bounds are numbers, so that a
requirement costs the same whatever number of values it lists. Of many terms only those are tried on a node that its
labels do not rule out at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from pilotage.model import Node
from pilotage.model.requirements import parse_int64
from pilotage.model.selectors import NodeSelectorRequirement, NodeSelectorTerm

_NEED_THE_LABEL: Final = frozenset({"In", "Exists", "Gt", "Lt"})
_MANY_TERMS: Final = 16
_FEW_VALUES: Final = 4


class LabelRequirement(NamedTuple):
    """A well-formed requirement on a label."""

    key: str
    operator: str
    values: frozenset[str]
    bound: int = 0
    """Of Gt and Lt."""

    @property
    def needs_label(self) -> bool:
        """False if a node without the label fulfils it."""
        return self.operator in _NEED_THE_LABEL

    def holds(self, label: str | None) -> bool:
        match self.operator:
            case "In":
                return label in self.values
            case "NotIn":
                return label not in self.values
            case "Exists":
                return label is not None
            case "DoesNotExist":
                return label is None
        number = None if label is None else parse_int64(label)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound


class NodeTerm(NamedTuple):
    """All of it must hold."""

    labels: tuple[LabelRequirement, ...]
    names: frozenset[str] | None
    """The only names that will do; None if all do."""
    other_names: frozenset[str]
    """Names that will not do."""

    @property
    def is_simple(self) -> bool:
        """Nothing but one requirement on a label, or names: many such terms are judged together."""
        return not self.other_names and len(self.labels) + (self.names is not None) == 1

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        for wanted in self.labels:
            if not wanted.holds(labels.get(wanted.key)):
                return False
        return (self.names is None or name in self.names) and name not in self.other_names


class Terms:
    """Terms of which one must hold."""

    __slots__ = ("_by_key", "_by_label", "_by_name", "_others", "all")

    def __init__(self, terms: Iterable[NodeSelectorTerm]) -> None:
        self.all: tuple[NodeTerm, ...] = tuple(made for term in terms if (made := term_of(term)) is not None)
        self._by_label: dict[tuple[str, str], list[NodeTerm]] = {}
        self._by_key: dict[str, list[NodeTerm]] = {}
        self._by_name: dict[str, list[NodeTerm]] = {}
        self._others: list[NodeTerm] = []
        if len(self.all) > _MANY_TERMS:
            for term in self.all:
                self._file(term)

    def match(self, node: Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        for term in self._that_may_match(labels, name):  # noqa: SIM110 (hints ask this for every class of waiting pods)
            if term.matches(labels, name):
                return True
        return False

    def _that_may_match(self, labels: Mapping[str, str], name: str) -> Iterable[NodeTerm]:
        return self.all if len(self.all) <= _MANY_TERMS else self._filed_under(labels, name)

    def _filed_under(self, labels: Mapping[str, str], name: str) -> Iterator[NodeTerm]:
        yield from self._by_name.get(name, ())
        for label in labels.items():
            yield from chain(self._by_label.get(label, ()), self._by_key.get(label[0], ()))
        yield from self._others

    def _file(self, term: NodeTerm) -> None:
        """Under something that a node must have to match."""
        if term.names is not None:
            for name in term.names:
                self._by_name.setdefault(name, []).append(term)
            return
        wanted = next((wanted for wanted in term.labels if wanted.needs_label), None)
        if wanted is None:
            self._others.append(term)
        elif wanted.operator == "In" and len(wanted.values) <= _FEW_VALUES:
            for value in wanted.values:
                self._by_label.setdefault((wanted.key, value), []).append(term)
        else:
            self._by_key.setdefault(wanted.key, []).append(term)


def term_of(term: NodeSelectorTerm) -> NodeTerm | None:
    """The term made ready; None if it can match nothing."""
    if (not term.match_expressions and not term.match_fields) or term.problem() is not None:
        return None
    names: frozenset[str] | None = None
    other_names: frozenset[str] = frozenset()
    for field in term.match_fields:
        if field.operator == "In":
            names = frozenset(field.values) if names is None else names.intersection(field.values)
        else:
            other_names = other_names.union(field.values)
    return NodeTerm(tuple([_wanted(requirement) for requirement in term.match_expressions]), names, other_names)


def labels_wanted(wanted: Mapping[str, str]) -> NodeTerm:
    """A node selector as a term."""
    return NodeTerm(
        tuple([LabelRequirement(key, "In", frozenset((value,))) for key, value in wanted.items()]), None, frozenset()
    )


def _wanted(requirement: NodeSelectorRequirement) -> LabelRequirement:
    values: Sequence[str] = requirement.values
    bound = parse_int64(values[0]) if requirement.operator in ("Gt", "Lt") else None
    return LabelRequirement(requirement.key, requirement.operator, frozenset(values), bound or 0)
