"""An applied configuration merged into an object, and fields taken out of one."""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.kinds.merge_types import LEAF, MAP, STRUCT, MergeType
from pilotage.sandbox.rules.managed_fields.field_sets import (
    SELF,
    FieldSet,
    KeyMissing,
    element_name,
    form_of,
    path_text,
)

_ABSENT: Final = object()


class Duplicates(KeyMissing):
    """A configuration names an element of a list twice."""


def merged(kind: MergeType, live: Any, applied: Any) -> Any:
    """`live` with `applied` merged into it; neither is altered, and the result shares parts with both."""
    form = form_of(kind, applied if live is None else live)
    if form == LEAF or applied is None or (not live and not applied) or form != form_of(kind, applied):
        return applied
    if form in (STRUCT, MAP):
        found = dict(live or {})
        for name, value in applied.items():
            before = found.get(name, _ABSENT)
            below = kind.below(name)
            found[name] = _alone(below, value) if before is _ABSENT else merged(below, before, value)
        return found
    return _merged_elements(kind, live or [], applied)


def _alone(kind: MergeType, value: Any) -> Any:
    """A value that meets no other one: only looked through for elements that are named twice."""
    form = form_of(kind, value)
    if form == LEAF or not value:
        return value
    if form in (STRUCT, MAP):
        return {name: _alone(kind.below(name), below) for name, below in value.items()}
    return _merged_elements(kind, [], value)


def _merged_elements(kind: MergeType, live: list[Any], applied: list[Any]) -> list[Any]:
    """Elements of the configuration in its order; the others stay where they are between them."""
    stored = [(element_name(kind, item), item) for item in live]
    names = [name for name, _ in stored]
    wanted: dict[str, Any] = {}
    for item in applied:
        name = element_name(kind, item)
        if name in wanted:
            raise Duplicates(f"duplicate entries for key {_shown(name)}")
        wanted[name] = item
    before: dict[str, Any] = {}
    for name, item in stored:
        before[name] = None if name in before else item
    shared = [name for name in wanted if name in before]
    order = list(wanted)
    found: list[Any] = []
    done: set[str] = set()

    def take(name: str) -> None:
        done.add(name)
        if shared and shared[0] == name:
            shared.pop(0)
        item = wanted[name]
        old = before.get(name)
        found.append(_alone(kind.element, item) if old is None else merged(kind.element, old, item))

    left = right = 0
    while left < len(names) or right < len(order):
        if left < len(names):
            name = names[left]
            if right < len(order) and name == order[right]:
                take(name)
                left, right = left + 1, right + 1
                continue
            if right < len(order) and name in wanted and shared and shared[0] != name:
                left += 1
                continue
            if name not in wanted:
                found.append(stored[left][1])
                left += 1
                continue
            if name in done:
                left += 1
        if right < len(order):
            take(order[right])
            right += 1
    return found


def _shown(name: str) -> str:
    return path_text((name,))


def removed(kind: MergeType, value: Any, fields: FieldSet) -> Any:
    """The value without these fields; None where nothing is left."""
    form = form_of(kind, value)
    if not value or form == LEAF:
        return value if not isinstance(value, dict | list) else None
    if form in (STRUCT, MAP):
        kept: dict[str, Any] = {}
        for name, below in value.items():
            unwanted = fields.get(f"f:{name}")
            if unwanted is None:
                kept[name] = below
            elif SELF not in unwanted:
                kept[name] = removed(kind.below(name), below, unwanted)
        return kept or None
    items: list[Any] = []
    for item in value:
        unwanted = fields.get(element_name(kind, item))
        if unwanted is None:
            items.append(item)
        elif SELF not in unwanted:
            items.append(removed(kind.element, item, unwanted))
    return items or None
