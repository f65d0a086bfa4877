"""How the parts of an object merge under server-side apply: what is one value, and what lists are sets or have keys.

For built-in kinds `apply_schemas.json` beside this file says it, for custom ones the schema of their definition. What
neither describes follows from the value: objects merge field by field, lists are replaced as a whole.

    spec.containers -> MergeType(LIST, keys=(("name", ...),), element=MergeType(STRUCT, ...))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from pilotage.sandbox.kinds.resources import ResourceType

LEAF: Final = 0
"""One value, whatever it consists of."""
DEDUCED: Final = 1
STRUCT: Final = 2
"""Fields that are known by name."""
MAP: Final = 3
SET: Final = 4
KEYED: Final = 5
"""A list of objects with keys."""

NO_DEFAULT: Final = object()
_META: Final = "meta.v1.ObjectMeta"


class MergeType:
    """How a value merges. `fields` of a struct are those that do not follow from the value alone."""

    __slots__ = ("element", "fields", "form", "keys")

    def __init__(
        self,
        form: int,
        element: MergeType | None = None,
        keys: tuple[tuple[str, Any], ...] = (),
        fields: Mapping[str, MergeType] | None = None,
    ) -> None:
        self.form = form
        self._set(element, keys, fields or {})

    def _set(
        self, element: MergeType | None, keys: tuple[tuple[str, Any], ...], fields: Mapping[str, MergeType]
    ) -> None:
        self.element = element or self
        self.keys = keys
        self.fields = fields

    def below(self, field: str) -> MergeType:
        """The type of a field, or of the value of a key."""
        if self.form == STRUCT:
            return self.fields.get(field, DEDUCED_TYPE)
        return self.element if self.form == MAP else DEDUCED_TYPE


LEAF_TYPE: Final = MergeType(LEAF)
DEDUCED_TYPE: Final = MergeType(DEDUCED)
_SET_TYPE: Final = MergeType(SET, LEAF_TYPE)


class _Table(msgspec.Struct):
    types: dict[str, dict[str, str]]
    empty: dict[str, msgspec.Raw]


@cache
def _table() -> _Table:
    text = files("pilotage.sandbox.kinds").joinpath("apply_schemas.json").read_bytes()
    return msgspec.json.decode(text, type=_Table)


def merge_type(resource_type: ResourceType) -> MergeType:
    """The type of the objects of a kind."""
    if resource_type.schema is not None:
        return _custom(resource_type.schema)
    name = f"{resource_type.group.partition('.')[0] or 'core'}.{resource_type.version}.{resource_type.kind}"
    return _named(name) if name in _table().types else _plain_custom()


def scale_type() -> MergeType:
    """The type of the small objects by which others are scaled."""
    return _named("autoscaling.v1.Scale")


def empty_object(resource_type: ResourceType) -> dict[str, Any]:
    """What an object of the kind looks like of which nothing is set: some fields are always there."""
    found = _table().empty.get(f"{resource_type.api_version} {resource_type.kind}")
    return {} if found is None or resource_type.is_custom else msgspec.json.decode(found)


_named_types: dict[str, MergeType] = {}


def _named(name: str) -> MergeType:
    known = _named_types.get(name)
    if known is None:
        known = _named_types[name] = MergeType(STRUCT)
        known.fields = {field: _coded(code) for field, code in _table().types.get(name, {}).items()}
    return known


def _coded(code: str) -> MergeType:
    match code[:1]:
        case "":
            return DEDUCED_TYPE
        case "!":
            return LEAF_TYPE
        case "?":
            return DEDUCED_TYPE
        case "{":
            return MergeType(MAP, _coded(code[2:]))
        case "[":
            keys, _, element = code[1:].partition("]")
            return MergeType(KEYED, _coded(element), tuple(map(_key, keys.split(",")))) if keys else _SET_TYPE
        case _:
            return _named(code)


def _key(text: str) -> tuple[str, Any]:
    name, equals, default = text.partition("=")
    return name, msgspec.json.decode(default) if equals else NO_DEFAULT


@cache
def _plain_custom() -> MergeType:
    return MergeType(STRUCT, fields={"metadata": _named(_META)})


_custom_types: dict[int, tuple[Mapping[str, Any], MergeType]] = {}
_MOST_CUSTOM: Final = 1024


def _custom(schema: Mapping[str, Any]) -> MergeType:
    known = _custom_types.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    if len(_custom_types) >= _MOST_CUSTOM:
        _custom_types.clear()
    made = _of_schema(schema)
    if made.form != STRUCT:
        made = MergeType(STRUCT)
    made.fields = {**made.fields, "metadata": _named(_META), "apiVersion": LEAF_TYPE, "kind": LEAF_TYPE}
    _custom_types[id(schema)] = schema, made
    return made


def _of_schema(schema: Mapping[str, Any]) -> MergeType:
    """The type of a part that a definition describes."""
    if schema.get("x-kubernetes-int-or-string"):
        return LEAF_TYPE
    kind = schema.get("type")
    if kind == "array":
        return _of_list(schema)
    if kind == "object":
        if schema.get("x-kubernetes-map-type") == "atomic":
            return LEAF_TYPE
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            fields = {name: _of_schema(below) for name, below in properties.items() if isinstance(below, Mapping)}
            if schema.get("x-kubernetes-embedded-resource"):
                fields["metadata"] = _named(_META)
            return MergeType(STRUCT, fields=fields)
        others = schema.get("additionalProperties")
        if isinstance(others, Mapping):
            return MergeType(MAP, _of_schema(others))
        return DEDUCED_TYPE
    if kind is None or schema.get("x-kubernetes-preserve-unknown-fields"):
        return DEDUCED_TYPE
    return LEAF_TYPE


def _of_list(schema: Mapping[str, Any]) -> MergeType:
    items = schema.get("items") or {}
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return MergeType(SET, _of_schema(items))
        case "map":
            properties = items.get("properties") or {}
            keys = tuple(
                (name, (properties.get(name) or {}).get("default", NO_DEFAULT))
                for name in schema.get("x-kubernetes-list-map-keys") or ()
            )
            return MergeType(KEYED, _of_schema(items), keys)
        case _:
            return LEAF_TYPE
