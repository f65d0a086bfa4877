"""Schemas as types of msgspec: a quick look at whether an object is what its schema wants.

Nearly every write is in order, and to see that takes a tenth of the time in which `structural_schema` finds out what is
wrong. So an object is first converted to a type that is made of the schema; what types cannot express, as patterns
and keys that must be unique, is checked by the structs when they are made. The answer may only be wrong in one way:
a valid object may be taken for a doubtful one, which is then judged in the slow way. What a schema demands that is not
known here makes a value doubtful.

    is_valid = quick_check(schema of spec)        is_valid({"size": 3})
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from pilotage.cel.patterns import BadPattern, is_found

Schema: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Any], bool]

INTEGER_FORMATS: Final = {"int32": 2**31, "int64": 2**63}
TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_MOST_PARTS: Final = 5_000
"""Of a schema that has more, no types are made: they would take too much memory."""
_LONGEST_REMEMBERED: Final = 256
_LARGEST: Final = 2**53
"""A bound that is no larger is the same as an integer and as a floating point number."""
_SAYS_NOTHING: Final = frozenset({"default", "description", "nullable", "x-kubernetes-preserve-unknown-fields"})
_SCALARS: Final = frozenset({"string", "integer", "boolean"})


def quick_check(schema: Schema) -> Check:
    """What says of a value whether it certainly is as the schema wants it."""
    try:
        type_, check = _Types().of(schema)
        _fits(None, type_, None)
    except (_TooLarge, RecursionError, TypeError, ValueError):  # bounds that are none, names that no field may have
        return _doubt
    return lambda value: _fits(value, type_, check)


def _fits(value: Any, type_: Any, check: Check | None) -> bool:
    try:
        converted = msgspec.convert(value, type_)
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeError):
        return False
    return converted is None or check is None or check(converted)


class _Doubtful:
    """The type of what cannot be judged quickly: no value has it."""


class _TooLarge(Exception):
    """The schema has too many parts."""


class _Types:
    """The types of one schema. Each comes with a check of what it cannot express, if there is such a thing."""

    def __init__(self) -> None:
        self._left = _MOST_PARTS

    def of(self, schema: Schema) -> tuple[Any, Check | None]:
        self._left -= 1
        if self._left < 0:
            raise _TooLarge
        type_, check = _one_of(schema) if schema.get("enum") else self._by_kind(schema)
        return (type_ | None, check) if schema.get("nullable") else (type_, check)

    def _by_kind(self, schema: Schema) -> tuple[Any, Check | None]:
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string"):
            number, check = _number(int, schema)
            return number | _text(schema), _all([check, _text_check(schema)])
        match kind:
            case "string":
                return _text(schema), _text_check(schema)
            case "integer":
                return _number(int, schema)
            case "number":
                return _number(float, schema)
            case "boolean":
                return bool, None
            case "array":
                return self._list(schema)
            case "object":
                return self._object(schema)
            case None if schema.keys() <= _SAYS_NOTHING:
                return Any, None
        return _Doubtful, None

    def _list(self, schema: Schema) -> tuple[Any, Check | None]:
        items = schema.get("items")
        item: Any
        item, check = self.of(items) if isinstance(items, Mapping) else (Any, None)
        type_ = Annotated[list[item], msgspec.Meta(**_bounds(schema, min_length="minItems", max_length="maxItems"))]
        checks: list[Check | None] = [] if check is None else [_each(check)]
        match schema.get("x-kubernetes-list-type"):
            case "set":
                is_scalar = isinstance(items, Mapping) and items.get("type") in _SCALARS
                checks.append(_is_a_set if is_scalar else _doubt)
            case "map":
                checks.append(_unique(items or {}, schema.get("x-kubernetes-list-map-keys") or ()))
        return type_, _all(checks)

    def _object(self, schema: Schema) -> tuple[Any, Check | None]:
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        required = schema.get("required") or ()
        sizes = _bounds(schema, min_length="minProperties", max_length="maxProperties")
        if properties or required:
            if sizes or isinstance(others, Mapping):
                return _Doubtful, None
            return self._struct(properties, required)
        item: Any
        item, check = self.of(others) if isinstance(others, Mapping) else (Any, None)
        type_ = Annotated[dict[str, item | None], msgspec.Meta(**sizes)]
        return type_, None if check is None else _each_value(check)

    def _struct(self, properties: Schema, required: Sequence[str]) -> tuple[Any, Check | None]:
        fields: list[Any] = []
        checks: list[tuple[str, Check]] = []
        names = list(dict.fromkeys((*properties, *required)))
        for at, name in enumerate(names):
            part = properties.get(name)
            type_, check = self.of(part) if isinstance(part, Mapping) else (Any, None)
            # The API server drops a null where nothing may be null, so that it counts as absent.
            fields.append((f"f{at}", type_) if name in required else (f"f{at}", type_ | None, None))
            if check is not None:
                checks.append((f"f{at}", check))
        rename = {f"f{at}": name for at, name in enumerate(names)}
        methods = {"__post_init__": _checked(checks)} if checks else {}
        options: dict[str, Any] = {"kw_only": True, "frozen": True, "gc": False}
        return msgspec.defstruct("Object", fields, rename=rename, namespace=methods, **options), None


def _bounds(schema: Schema, **names: str) -> dict[str, Any]:
    return {bound: schema[name] for bound, name in names.items() if name in schema}


def _text(schema: Schema) -> Any:
    return Annotated[str, msgspec.Meta(**_bounds(schema, min_length="minLength", max_length="maxLength"))]


def _number(kind: type[int | float], schema: Schema) -> tuple[Any, Check | None]:
    least, most = schema.get("minimum"), schema.get("maximum")
    limit = INTEGER_FORMATS.get(str(schema.get("format")))
    if any(bound is not None and not -_LARGEST <= bound <= _LARGEST for bound in (least, most)):
        return _Doubtful, None
    bounds: dict[str, Any] = {}
    if least is not None:
        bounds["gt" if schema.get("exclusiveMinimum") is True else "ge"] = math.ceil(least) if kind is int else least
    elif limit is not None:
        bounds["ge"] = -limit
    if most is not None:
        bounds["lt" if schema.get("exclusiveMaximum") is True else "le"] = math.floor(most) if kind is int else most
    elif limit is not None:
        bounds.update({"le": limit - 1} if kind is int else {"lt": limit})
    return Annotated[kind, msgspec.Meta(**bounds)], None


def _one_of(schema: Schema) -> tuple[Any, Check | None]:
    values = schema["enum"]
    is_text = schema.get("type") == "string" and all(type(value) is str for value in values)
    if not is_text or schema.keys() & {"minLength", "maxLength", "x-kubernetes-int-or-string"}:
        return _Doubtful, None
    return Literal[tuple(values)], _text_check(schema)


# --- checks: asked about values that are there, and have their type ---------------------------------------------------


def _doubt(_: Any) -> bool:
    return False


def _text_check(schema: Schema) -> Check | None:
    checks: list[Check | None] = []
    pattern = schema.get("pattern")
    if pattern:
        checks.append(lambda value: type(value) is not str or matches(value, pattern))
    if schema.get("format") == "date-time":
        checks.append(lambda value: type(value) is not str or TIME.fullmatch(value) is not None)
    return _all(checks)


def _all(checks: Sequence[Check | None]) -> Check | None:
    asked = [check for check in checks if check is not None]
    if len(asked) < 2:
        return asked[0] if asked else None
    return lambda value: all(check(value) for check in asked)


def _each(check: Check) -> Check:
    return lambda values: all(check(value) for value in values if value is not None)


def _each_value(check: Check) -> Check:
    return lambda values: all(check(value) for value in values.values() if value is not None)


def _checked(checks: Sequence[tuple[str, Check]]) -> Callable[[Any], None]:
    def check_fields(self: Any) -> None:
        for field, check in checks:
            value = getattr(self, field)
            if value is not None and not check(value):
                raise ValueError(field)

    return check_fields


def _is_a_set(values: Sequence[Any]) -> bool:
    return len(set(values)) == len(values)


def _unique(items: Schema, keys: Sequence[str]) -> Check:
    """Of structs: whether their keys differ."""
    properties = list(items.get("properties") or ())
    kinds = {items["properties"][key].get("type") for key in keys if key in properties}
    if items.get("type") != "object" or not keys or not set(keys) <= set(properties) or not kinds <= _SCALARS:
        return _doubt
    fields = [f"f{properties.index(key)}" for key in keys]

    def are_unique(values: Sequence[Any]) -> bool:
        if len(values) < 2:
            return True
        return len({tuple([getattr(value, field, None) for field in fields]) for value in values}) == len(values)

    return are_unique


def matches(value: str, pattern: str) -> bool:
    """By RE2, as in the API server: a user's pattern cannot take for ever. One that is none is not judged."""
    return _known_match(value, pattern) if len(value) <= _LONGEST_REMEMBERED else _match(value, pattern)


def _match(value: str, pattern: str) -> bool:
    try:
        return is_found(value, pattern)
    except BadPattern:
        return True


_known_match = lru_cache(maxsize=4096)(_match)
