"""Selectors: which objects are meant.

Three forms occur. A `LabelSelector` stands in specs (spread constraints, pod affinity, services): absent it matches
nothing, empty it matches everything. A `NodeSelector` is a list of alternatives, each a list of requirements on a
node's labels or name. And users write selectors as text in `kubectl -l` and `--field-selector`; the parsers here read
exactly what the API server accepts and say at which position it went wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from pilotage.model.meta import Shape
from pilotage.model.requirements import Requirement, is_label_value, parse_int64

__all__ = [
    "FieldRequirement",
    "LabelRequirements",
    "LabelSelector",
    "LabelSelectorRequirement",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "PreferredSchedulingTerm",
    "Requirement",
    "SelectorError",
    "parse_field_selector",
    "parse_label_selector",
    "selector_matches",
]


class SelectorError(ValueError):
    """A selector text that can not be read; names the text, the position and the way out."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text = text
        self.position = position
        super().__init__(f'selector "{text}", position {position}: {problem}')


class LabelSelectorRequirement(Requirement, frozen=True):
    """In, NotIn, Exists or DoesNotExist on the labels of an object."""


class LabelSelector(Shape, frozen=True):
    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """All labels equal and all expressions hold; an empty selector matches everything."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(expression.matches(labels) for expression in self.match_expressions)

    @property
    def is_empty(self) -> bool:
        return not self.match_labels and not self.match_expressions

    def problem(self) -> str | None:
        """Why Kubernetes would not accept this selector; None if it would."""
        return next(filter(None, (expression.problem() for expression in self.match_expressions)), None)


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Like `matches`; no selector at all matches nothing."""
    return selector is not None and selector.matches(labels)


class NodeSelectorRequirement(Requirement, frozen=True):
    """In, NotIn, Exists, DoesNotExist, Gt or Lt on a node's labels, or on its name as the field metadata.name."""


class NodeSelectorTerm(Shape, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Everything in the term holds for a node with these labels and this name; an empty term never does."""
        if not self.match_expressions and not self.match_fields:
            return False
        for expression in self.match_expressions:
            if not expression.matches(labels):
                return False
        return all(_field_matches(requirement, name) for requirement in self.match_fields)

    def problem(self) -> str | None:
        """Why Kubernetes would not accept this term; None if it would."""
        problems = [expression.problem() for expression in self.match_expressions]
        problems += [_field_problem(requirement) for requirement in self.match_fields]
        return next(filter(None, problems), None)


class NodeSelector(Shape, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """One of the terms holds; without terms nothing matches."""
        return any(term.matches(labels, name) for term in self.node_selector_terms)


class PreferredSchedulingTerm(Shape, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


def _field_matches(requirement: NodeSelectorRequirement, name: str) -> bool:
    if _field_problem(requirement) is not None:
        return False
    return (name in requirement.values) == (requirement.operator == "In")


def _field_problem(requirement: NodeSelectorRequirement) -> str | None:
    if requirement.key != "metadata.name":
        return f'"{requirement.key}" is not a field that can be selected (only metadata.name)'
    if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
        return "metadata.name takes the operators In and NotIn with exactly one value"
    return None


class LabelRequirements(NamedTuple):
    """A label selector that was written as text: all requirements must hold."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


_BLANKS = " \t\r\n"
_OPERATOR = re.compile(r"==|=|!=|>|<|(?:in|notin)(?=[\s(])", re.ASCII)
_WORD = re.compile(r"[^\s,=!<>()]+")
_KEY_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_WRITTEN_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}


def parse_label_selector(text: str) -> LabelRequirements:
    """Read `a=b,c in (x,y),!d,e!=f,g,h>3`; an empty text matches everything."""
    return _LabelSelectorReader(text).read()


class _LabelSelectorReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> LabelRequirements:
        requirements: list[Requirement] = []
        self._skip_blanks()
        while self._at < len(self._text):
            requirements.append(self._requirement())
            self._skip_blanks()
            if self._at < len(self._text):
                self._expect(",")
                self._skip_blanks()
                if self._at == len(self._text):
                    raise self._error("a requirement must follow the comma")
        return LabelRequirements(tuple(requirements))

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._at += 1
            return Requirement(self._key(), "DoesNotExist")
        key = self._key()
        self._skip_blanks()
        if self._peek() in ("", ","):
            return Requirement(key, "Exists")
        found = _OPERATOR.match(self._text, self._at)
        if found is None:
            raise self._error("expected one of = == != in notin > < or a comma")
        self._at = found.end()
        operator = _WRITTEN_OPERATORS[found[0]]
        values = self._value_list() if found[0] in ("in", "notin") else (self._value(),)
        if operator in ("Gt", "Lt") and parse_int64(values[0]) is None:
            raise self._error(f"{found[0]} compares with an integer")
        return Requirement(key, operator, values)

    def _key(self) -> str:
        self._skip_blanks()
        start = self._at
        key = self._word()
        prefix, slash, name = key.rpartition("/")
        good_prefix = not slash or (len(prefix) <= 253 and _KEY_PREFIX.fullmatch(prefix))
        if not name or not good_prefix or not is_label_value(name):
            raise self._error(f'"{key}" is not a label key (letters, digits, - _ . and an optional prefix/)', start)
        return key

    def _value(self) -> str:
        self._skip_blanks()
        start = self._at
        value = self._word()
        if not is_label_value(value):
            raise self._error(f'"{value}" is not a label value (at most 63 letters, digits, - _ .)', start)
        return value

    def _value_list(self) -> tuple[str, ...]:
        self._skip_blanks()
        self._expect("(")
        values = [self._value()]
        self._skip_blanks()
        while self._peek() == ",":
            self._at += 1
            values.append(self._value())
            self._skip_blanks()
        self._expect(")")
        return tuple(values)

    def _word(self) -> str:
        found = _WORD.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _skip_blanks(self) -> None:
        while self._peek() in tuple(_BLANKS):
            self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            seen = f'found "{self._peek()}"' if self._peek() else "the text ends"
            raise self._error(f'expected "{mark}", {seen}')
        self._at += 1

    def _error(self, problem: str, position: int | None = None) -> SelectorError:
        return SelectorError(self._text, self._at if position is None else position, problem)


class FieldRequirement(NamedTuple):
    """`path=value` (`operator` "=") or `path!=value` (`operator` "!=")."""

    path: str
    operator: str
    value: str

    def matches(self, actual: str) -> bool:
        return (actual == self.value) == (self.operator == "=")


_FIELD = re.compile(r"(?P<path>[^=!,\\\s]+)\s*(?P<operator>==|!=|=)(?P<value>(?:\\[\\,=]|[^\\,=])*)")


def parse_field_selector(text: str) -> list[FieldRequirement]:
    """Read `spec.nodeName=x,status.phase!=Running`; `\\,` `\\=` and `\\\\` stand for the character itself."""
    requirements: list[FieldRequirement] = []
    at = 0
    while at < len(text):
        found = _FIELD.match(text, at)
        if found is None:
            raise SelectorError(text, at, "expected field=value or field!=value")
        at = found.end()
        if at < len(text) and text[at] != ",":
            raise SelectorError(text, at, f'expected a comma, found "{text[at]}"')
        at += 1
        operator = "!=" if found["operator"] == "!=" else "="
        requirements.append(FieldRequirement(found["path"], operator, re.sub(r"\\(.)", r"\1", found["value"])))
    return requirements
