"""One requirement on a set of labels: key, operator, values.

Label selectors, node selectors and selectors written as text all reduce to this. A requirement that Kubernetes would
refuse to parse (unknown operator, `In` without values, `Gt` of a word) matches nothing; `problem()` says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from pilotage.model.meta import Shape

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
_LONGEST_LABEL_VALUE = 63
_FEW_VALUES = 32
SET_OPERATORS = ("In", "NotIn")
EXISTENCE_OPERATORS = ("Exists", "DoesNotExist")
ORDER_OPERATORS = ("Gt", "Lt")


class Requirement(Shape, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self._holds(labels.get(self.key)) and requirement_problem(self) is None

    def problem(self) -> str | None:
        """Why Kubernetes would not accept this requirement; None if it would."""
        return requirement_problem(self)

    def _holds(self, label: str | None) -> bool:
        match self.operator:
            case "In":
                return label in self.values
            case "NotIn":
                return label not in self.values
            case "Exists":
                return label is not None
            case "DoesNotExist":
                return label is None
            case "Gt" | "Lt":
                return label is not None and self._compares(label)
        return False

    def _compares(self, label: str) -> bool:
        have, bound = parse_int64(label), parse_int64(self.values[0] if self.values else "")
        if have is None or bound is None:
            return False
        return have > bound if self.operator == "Gt" else have < bound


def requirement_problem(requirement: Requirement) -> str | None:
    """Why Kubernetes would not accept the requirement; None if it would."""
    # What is remembered must stay small: a requirement of a megabyte is one of a few.
    return _problem(requirement) if len(requirement.values) <= _FEW_VALUES else _problem_of_many(requirement)


def _find_problem(requirement: Requirement) -> str | None:
    operator, values = requirement.operator, requirement.values
    if operator in SET_OPERATORS and not values:
        return f'key "{requirement.key}": operator {operator} needs at least one value'
    if operator in EXISTENCE_OPERATORS and values:
        return f'key "{requirement.key}": operator {operator} takes no values'
    if operator in ORDER_OPERATORS and (len(values) != 1 or parse_int64(values[0]) is None):
        return f'key "{requirement.key}": operator {operator} needs exactly one integer'
    if operator not in SET_OPERATORS + EXISTENCE_OPERATORS + ORDER_OPERATORS:
        return f'key "{requirement.key}": "{operator}" is not an operator (In, NotIn, Exists, DoesNotExist, Gt, Lt)'
    wrong = next((value for value in values if not is_label_value(value)), None)
    return None if wrong is None else f'key "{requirement.key}": "{wrong}" can not be the value of a label'


_problem = lru_cache(maxsize=4096)(_find_problem)
_problem_of_many = lru_cache(maxsize=16)(_find_problem)


def is_label_value(text: str) -> bool:
    return len(text) <= _LONGEST_LABEL_VALUE and _LABEL_VALUE.fullmatch(text) is not None


def parse_int64(text: str) -> int | None:
    """The integer that `text` is; None if it is none or does not fit 64 bits."""
    if len(text) > _LONGEST_LABEL_VALUE or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
