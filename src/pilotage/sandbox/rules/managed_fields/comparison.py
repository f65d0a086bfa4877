"""What a change of an object added, modified and removed, as sets of fields."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pilotage.sandbox.kinds.merge_types import LEAF, MAP, STRUCT, MergeType
from pilotage.sandbox.rules.managed_fields.field_sets import (
    NOTHING,
    ONLY_SELF,
    FieldSet,
    all_fields,
    form_of,
    named_elements,
)


class FieldChange(NamedTuple):
    removed: FieldSet
    modified: FieldSet
    added: FieldSet


_SAME: Final = FieldChange(NOTHING, NOTHING, NOTHING)


def compare(kind: MergeType, old: Any, new: Any) -> FieldChange:
    """KeyMissing when a list with keys has an element without."""
    if old == new:
        return _SAME
    form = form_of(kind, new if old is None else old)
    if form == LEAF or (not old and not new) or form != form_of(kind, old if new is None else new):
        return FieldChange(NOTHING, ONLY_SELF, NOTHING)
    if form in (STRUCT, MAP):
        return _compare_fields(kind, old or {}, new or {})
    return _compare_elements(kind, old or [], new or [])


def _compare_fields(kind: MergeType, old: dict[str, Any], new: dict[str, Any]) -> FieldChange:
    parts: list[tuple[str, FieldChange]] = []
    for name, before in old.items():
        if name not in new:
            parts.append((f"f:{name}", _gone(kind.below(name), before)))
        elif before != new[name]:
            parts.append((f"f:{name}", compare(kind.below(name), before, new[name])))
    for name, after in new.items():
        if name not in old:
            parts.append((f"f:{name}", _come(kind.below(name), after)))
    return _joined(parts)


def _compare_elements(kind: MergeType, old: list[Any], new: list[Any]) -> FieldChange:
    before, after = named_elements(kind, old), named_elements(kind, new)
    parts: list[tuple[str, FieldChange]] = []
    for name in before | after:
        parts.append((name, _compare_named(kind.element, before.get(name, []), after.get(name, []))))
    return _joined(parts)


def _compare_named(kind: MergeType, before: list[Any], after: list[Any]) -> FieldChange:
    """Elements of one name; where there are several they count as one value."""
    if len(before) > 1 and len(after) > 1:
        return _SAME if before == after else FieldChange(NOTHING, ONLY_SELF, NOTHING)
    if len(before) > 1:
        come = _come(kind, after[0]).added if after else NOTHING
        return FieldChange(ONLY_SELF, NOTHING, come)
    if len(after) > 1:
        gone = _gone(kind, before[0]).removed if before else NOTHING
        return FieldChange(gone, NOTHING, ONLY_SELF)
    if not before:
        return _come(kind, after[0])
    return compare(kind, before[0], after[0]) if after else _gone(kind, before[0])


def _gone(kind: MergeType, value: Any) -> FieldChange:
    return FieldChange(all_fields(kind, value), NOTHING, NOTHING)


def _come(kind: MergeType, value: Any) -> FieldChange:
    return FieldChange(NOTHING, NOTHING, all_fields(kind, value))


def _joined(parts: list[tuple[str, FieldChange]]) -> FieldChange:
    removed, modified, added = ({step: part[at] for step, part in parts if part[at]} for at in range(3))
    return FieldChange(removed, modified, added)
