"""What the rules of a kind are written with: tables of (field, rule).

    _PORT = fields(("name!", label), ("port", port, 0), ("protocol", one_of("SCTP", "TCP", "UDP")))
    _SPEC = fields(("type", one_of("ClusterIP", ...)), ("ports!", each(_PORT)), ("", _external_name))

A rule says what is wrong with the value at a path; it is asked about values whose types have been checked against the
API schemas (`kinds/shapes.py`), and null counts as absent. A table is a rule itself, so that tables nest as objects do.
Errors come in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pilotage.sandbox.rules.json_fields import Json, nested
from pilotage.sandbox.rules.validation.problems import (
    IMMUTABLE,
    NOT_NEGATIVE,
    Errors,
    duplicate,
    invalid,
    not_supported,
    required,
)

Rule = Callable[[Any, str], Errors]
"""What is wrong with a value at a path."""
UpdateRule = Callable[[Json, Json], Errors]
"""What a change from an old object to a new one may not do; the old one may be of any shape."""
Row = tuple[str, Rule] | tuple[str, Rule, object]

_WHOLE: Final = object()
_REQUIRED: Final = object()
_Table = list[tuple[str | None, str, Rule, Any]]
"""Name, the same as a step of a path, rule, and what absence counts as or one of the marks."""
_tables: dict[Rule, _Table] = {}


def fields(*rows: Row) -> Rule:
    """The rules of an object by field: (name, rule), (name, rule, what absence counts as), or ("", rule of the whole).

    An absent field has no errors, unless a third column says what to judge in its place. A name that ends with `!` is
    of a field that is required: neither absent nor zero, an empty text or an empty list.
    """
    table = _compiled(rows)
    are_optional = all(name is not None and absent is None for name, _, _, absent in table)
    have_none_of_them = frozenset(name for name, *_ in table).isdisjoint if are_optional else None

    def check(obj: Mapping[str | None, Any], path: str) -> Errors:
        errors: Errors = []
        if have_none_of_them is not None and have_none_of_them(obj):
            return errors
        for name, step, rule, absent in table:
            value = obj.get(name)
            if value is None:
                if absent is None:
                    continue
                value = absent
            if value is _WHOLE:
                found = rule(obj, path)
            elif absent is _REQUIRED and (value is absent or (not value and type(value) is not dict)):
                found = [required(path + step if path else step[1:])]
            else:
                found = rule(value, path + step if path else step[1:])
            if found:
                errors += found
        return errors

    _tables[check] = table
    return check


def _compiled(rows: Iterable[Row]) -> _Table:
    """The rows as `check` reads them, with those of tables for the whole object in place of these."""
    table: _Table = []
    for name, rule, *absent in rows:
        field = name.removesuffix("!")
        if name:
            table.append((field, f".{field}", rule, _REQUIRED if field != name else absent[0] if absent else None))
        else:
            table += _tables.get(rule) or [(None, "", rule, _WHOLE)]
    return table


def each(rule: Rule, *, unique: str = "") -> Rule:
    """`rule` for every element of a list; the field `unique` may have a value only once."""

    def check(values: Sequence[Any], path: str) -> Errors:
        errors: Errors = []
        seen = set()
        for index, value in enumerate(values):
            errors += rule(value, f"{path}[{index}]")
            if unique:
                if value.get(unique) in seen:
                    errors.append(duplicate(f"{path}[{index}].{unique}", value[unique]))
                seen.add(value.get(unique) or "")
        return errors

    return check


def nothing(_value: object, _path: str) -> Errors:
    """The rule of a field that is only required."""
    return []


def optional(rule: Rule) -> Rule:
    """`rule` for a text or number of which the empty text or zero counts as absent."""
    return lambda value, path: rule(value, path) if value else []


def syntax(problem_of: Callable[[Any], str]) -> Rule:
    """A value must have a form; `problem_of` says what is wrong with it."""

    def check(value: object, path: str) -> Errors:
        problem = problem_of(value)
        return [invalid(path, value, problem)] if problem else []

    return check


def one_of(*supported: str) -> Rule:
    """A choice: the empty text is left to defaulting."""
    return lambda value, path: [] if not value or value in supported else [not_supported(path, value, supported)]


def at_least(least: int, problem: str = NOT_NEGATIVE) -> Rule:
    return lambda value, path: [] if value >= least else [invalid(path, value, problem)]


def immutable(*paths: str) -> UpdateRule:
    """The fields at the paths (`spec.selector`) may not change."""
    steps = [(path, path.split(".")) for path in paths]

    def check(old: Json, new: Json) -> Errors:
        pairs = [(path, nested(old, *keys), nested(new, *keys)) for path, keys in steps]
        return [invalid(path, now, IMMUTABLE) for path, before, now in pairs if before != now]

    return check


def may_change(_old: Json, _new: Json) -> Errors:
    return []


@dataclass(frozen=True, slots=True)
class KindRules:
    """The rules of one kind, beside those of the metadata; the path of the object itself is empty."""

    state: Rule = nothing
    """What must hold in every state."""
    creation: Rule = nothing
    """What must hold for a new object only."""
    update: UpdateRule = may_change
    """Not asked when only metadata or status differ."""
    status: UpdateRule = may_change
    """What a write to the status subresource may not say; the old object may be an outline."""
    judges_status: bool = False
    """`state` also reads the status, so it is asked again when only that changes."""
