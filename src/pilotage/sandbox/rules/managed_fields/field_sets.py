"""Sets of fields, as trees: what `metadata.managedFields` tells in its format `FieldsV1`.

A set is a dict of path elements, whose values are sets again; the element "." says that the path up to here is in the
set itself. So `{"f:spec": {"f:replicas": {".": {}}}}` holds `.spec.replicas`, and union, difference and intersection
need to know nothing of paths.

    f:name          a field of an object or a key of a map
    k:{"name":"a"}  an element of a list with keys
    v:"x"           an element of a list that is a set
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pilotage.sandbox.kinds.merge_types import DEDUCED, KEYED, LEAF, MAP, NO_DEFAULT, SET, STRUCT, MergeType

FieldSet = dict[str, Any]
"""Sets are never altered once they were handed out."""
Path = tuple[str, ...]

SELF: Final = "."
NOTHING: Final[FieldSet] = {}
ONLY_SELF: Final[FieldSet] = {SELF: NOTHING}

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


class KeyMissing(ValueError):
    """An element of a list cannot be distinguished from others; the text says why."""


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one or one is other:
        return other
    if not other:
        return one
    both = dict(one)
    for step, below in other.items():
        both[step] = union(both[step], below) if step in both else below
    return both


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one or not other:
        return one
    left: FieldSet = {}
    for step, below in one.items():
        if step not in other:
            left[step] = below
        elif step != SELF:
            rest = difference(below, other[step])
            if rest:
                left[step] = rest
    return left


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    common: FieldSet = {}
    for step, below in one.items():
        if step == SELF:
            if SELF in other:
                common[SELF] = NOTHING
        elif step in other:
            shared = intersection(below, other[step])
            if shared:
                common[step] = shared
    return common


def without(fields: FieldSet, paths: tuple[Path, ...]) -> FieldSet:
    """The set without these paths and all below them."""
    for path in paths:
        fields = _without(fields, path)
    return fields


def _without(fields: FieldSet, path: Path) -> FieldSet:
    step, *rest = path
    if step not in fields:
        return fields
    below = _without(fields[step], tuple(rest)) if rest else NOTHING
    others = {name: value for name, value in fields.items() if name != step}
    return {**others, step: below} if below else others


def holds(fields: FieldSet, path: Path) -> bool:
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return SELF in fields


def paths_in(fields: FieldSet) -> Iterator[Path]:
    """Every path, those of one level before what is below them, in the order in which messages list them."""
    steps = sorted((step for step in fields if step != SELF), key=_rank)
    for step in steps:
        if SELF in fields[step]:
            yield (step,)
    for step in steps:
        for path in paths_in(fields[step]):
            yield (step, *path)


def _rank(step: str) -> tuple[int, str]:
    return "fkvi".index(step[0]), step


def path_text(path: Path) -> str:
    """`.spec.containers[name="web"].image`"""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    kind, _, value = step.partition(":")
    match kind:
        case "f":
            return f".{value}"
        case "k":
            return f"[{','.join(f'{name}={_encode(part).decode()}' for name, part in _decode(value).items())}]"
        case "v":
            return f"[={value}]"
        case _:
            return f"[{value}]"


def to_fields_v1(fields: FieldSet) -> dict[str, Any]:
    """As it stands in managedFields: a path that is in the set and has nothing below it is an empty object."""
    return {
        step: NOTHING if step == SELF or (SELF in below and len(below) == 1) else to_fields_v1(below)
        for step, below in sorted(fields.items())
    }


def from_fields_v1(fields: Any) -> FieldSet:
    """ValueError for what is none."""
    if not isinstance(fields, dict):
        raise ValueError("fieldsV1 is not an object")
    return {step: _decoded(step, below) for step, below in fields.items()}


def _decoded(step: str, below: Any) -> FieldSet:
    if step == SELF:
        return NOTHING
    if step[:2] not in ("f:", "k:", "v:", "i:"):
        raise ValueError(f"unknown path element {step}")
    if step[0] == "k":
        below_key = _decode(step[2:])
        step = f"k:{_encode(below_key).decode()}"
    return from_fields_v1(below) if below else ONLY_SELF


def form_of(kind: MergeType, value: Any) -> int:
    """How a value is treated: by its type, as far as the value fits to it."""
    form = kind.form
    if form == LEAF:
        return LEAF
    if isinstance(value, dict):
        return form if form in (STRUCT, MAP) else MAP if form == DEDUCED else LEAF
    if isinstance(value, list):
        return form if form in (SET, KEYED) else LEAF
    return LEAF


def element_name(kind: MergeType, item: Any) -> str:
    """The path element of an element of a list; KeyMissing when it has none."""
    if kind.form == SET:
        if item is None or isinstance(item, dict | list):
            raise KeyMissing("associative list without keys has an element that's no scalar")
        return f"v:{_encode(item).decode()}"
    if not isinstance(item, dict):
        raise KeyMissing("associative list with keys may not have non-map elements")
    keys = {}
    for name, default in kind.keys:
        value = item.get(name, default)
        if value is not NO_DEFAULT:
            keys[name] = value
    if not keys:
        names = " ".join(f'"{name}"' for name, _ in kind.keys)
        problem = "(and doesn't have default values for any key fields)"
        raise KeyMissing(f"associative list with keys has an element that omits all key fields [{names}] {problem}")
    return f"k:{_encode(keys).decode()}"


def fields_of(kind: MergeType, value: Any) -> FieldSet:
    """The fields of an applied configuration: those that are given a value, and the elements of lists."""
    form = form_of(kind, value)
    if form == LEAF:
        return ONLY_SELF
    found: FieldSet = {}
    if form in (STRUCT, MAP):
        for name, below in value.items():
            fields = fields_of(kind.below(name), below)
            if below is None or below == {} or form == MAP or name not in kind.fields:
                fields = {**fields, SELF: NOTHING}
            if fields:
                found[f"f:{name}"] = fields
        return found
    for name, items in named_elements(kind, value).items():
        found[name] = ONLY_SELF if len(items) > 1 else {**fields_of(kind.element, items[0]), SELF: NOTHING}
    return found


def named_elements(kind: MergeType, items: list[Any]) -> dict[str, list[Any]]:
    """The elements of a list by name; more than one where a list that should have no duplicates has some."""
    named: dict[str, list[Any]] = {}
    for item in items:
        named.setdefault(element_name(kind, item), []).append(item)
    return named


def all_fields(kind: MergeType, value: Any) -> FieldSet:
    """Every path of a value that was not there before, that of the value itself included."""
    form = form_of(kind, value)
    if form == LEAF or not value:
        return ONLY_SELF
    found: FieldSet = {SELF: NOTHING}
    if form in (STRUCT, MAP):
        for name, below in value.items():
            found[f"f:{name}"] = all_fields(kind.below(name), below)
        return found
    for name, items in named_elements(kind, value).items():
        found[name] = ONLY_SELF if len(items) > 1 else all_fields(kind.element, items[0])
    return found


def with_declared(kind: MergeType, fields: FieldSet) -> FieldSet:
    """The set with all fields that are known by name and have something below them in it."""
    found: FieldSet = {}
    for step, below in fields.items():
        if step == SELF:
            found[SELF] = NOTHING
            continue
        is_field = step[0] == "f"
        declared = with_declared(kind.below(step[2:]) if is_field else kind.element, below)
        if is_field and step[2:] in kind.fields and SELF not in declared:
            declared = {**declared, SELF: NOTHING}
        found[step] = declared
    return found
