"""Objects of custom kinds against the OpenAPI schema of their definition: defaults and the common rules.

Defaults, types, required fields, enums, bounds, lengths, patterns, int-or-string, and what makes items of lists unique
are honoured, at any depth; of `format` integers and times. `schema_rules` judges by CEL. Not judged: the logical
junctors (`anyOf`, `oneOf`, `allOf`, `not`): what only they forbid is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from pilotage.cel.patterns import BadPattern, is_found
from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.kinds.schema_rules import SchemaRules

Schema = Mapping[str, Any]
Json = Mapping[str, Any]

_JSON_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
_BLOCKING: Final = frozenset(
    {
        "FieldValueRequired",
        "FieldValueNotSupported",
        "FieldValueTypeInvalid",
        "FieldValueTooLong",
        "FieldValueTooMany",
    }
)
"""After these, rules would be asked about values that are none of theirs."""
_NOT_CHECKED: Final = FieldError(
    "<nil>",
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation",
    None,
)
_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_OF_EVERY_OBJECT: Final = frozenset({"apiVersion", "kind", "metadata"})
_FEW_ITEMS: Final = 64
"""Of a list in which equal items are looked for one by one."""

_encode = msgspec.json.Encoder().encode


def apply_schema_defaults(schema: Schema, value: Any) -> None:
    """Fill in what the object leaves out and the schema has a default for, in place."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for item in value:
                apply_schema_defaults(items, item)
    elif isinstance(value, dict):
        _default_fields(schema, value)


def _default_fields(schema: Schema, value: dict[str, Any]) -> None:
    properties = schema.get("properties") or {}
    for field, below in properties.items():
        if not isinstance(below, Mapping):
            continue
        absent = field not in value or (value[field] is None and not below.get("nullable"))
        if absent and "default" in below:
            value[field] = msgspec.to_builtins(below["default"])
        if field in value:
            apply_schema_defaults(below, value[field])
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        for field, item in value.items():
            if field not in properties:
                apply_schema_defaults(others, item)


def schema_errors(schema: Schema, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[FieldError]:
    """What the schema forbids about the object; metadata is judged elsewhere.

    Fields that are as they were in `old` are not judged again: the API server also bears what was stored already.
    """
    judged = {field: value for field, value in obj.items() if field not in _OF_EVERY_OBJECT}
    required = [field for field in schema.get("required") or () if field not in _OF_EVERY_OBJECT]
    return list(_errors({**schema, "required": required}, judged, "", old))


def custom_errors(schema: Schema, rules: SchemaRules | None, obj: Json, old: Json | None = None) -> list[FieldError]:
    """What the schema and its rules forbid about the object; `old` is the one that it replaces."""
    errors = schema_errors(schema, obj, old)
    if rules is None or rules.is_empty:
        return errors
    if any(error.type in _BLOCKING for error in errors):
        return [*errors, _NOT_CHECKED]
    return [*errors, *rules.errors(obj, old)]


def _errors(schema: Schema, value: Any, path: str, old: Any = None) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    wrong_type = _type_error(schema, value, path)
    if wrong_type is not None:
        yield wrong_type
        return
    yield from _enum_errors(schema, value, path)
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield from _bound_errors(schema, value, path)
    elif isinstance(value, str):
        yield from _text_errors(schema, value, path)
    elif isinstance(value, list):
        yield from _list_errors(schema, value, path, old)
    elif isinstance(value, dict):
        yield from _object_errors(schema, value, path, old)


def _is_same(value: Any, before: Any) -> bool:
    """Equal, and of the same types: to Python 1 is True."""
    return value is before or (bool(value == before) and _encode(value) == _encode(before))


def _type_error(schema: Schema, value: Any, path: str) -> FieldError | None:
    actual = _JSON_TYPES.get(type(value), "object")
    if schema.get("x-kubernetes-int-or-string"):
        allowed: tuple[str, ...] = ("integer", "string")
    elif schema.get("type"):
        allowed = (schema["type"],)
    else:
        return None
    if actual in allowed or (actual == "integer" and "number" in allowed):
        return None
    if actual == "number" and "integer" in allowed and value == int(value):
        return None
    problem = f'must be of type {",".join(allowed)}: "{actual}"'
    return FieldError(path or "<root>", f"{path or '<root>'} in body {problem}", actual, "FieldValueTypeInvalid")


def _enum_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        supported = ", ".join(msgspec.json.encode(item).decode() for item in allowed)
        yield FieldError(path, f"supported values: {supported}", value, "FieldValueNotSupported")


def _bound_errors(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    least, most = schema.get("minimum"), schema.get("maximum")
    limit = _INTEGERS.get(str(schema.get("format")))
    if limit is not None and not -limit <= value < limit:
        yield FieldError(path, f"{path} in body should be of format {schema['format']}", value)
    if least is not None and (value < least or (schema.get("exclusiveMinimum") is True and value == least)):
        yield FieldError(path, f"{path} in body should be greater than or equal to {least}", value)
    if most is not None and (value > most or (schema.get("exclusiveMaximum") is True and value == most)):
        yield FieldError(path, f"{path} in body should be less than or equal to {most}", value)


def _text_errors(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minLength", 0):
        yield FieldError(path, f"{path} in body should be at least {schema['minLength']} chars long", value)
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield FieldError(path, f"may not be more than {schema['maxLength']} bytes", value, "FieldValueTooLong")
    if schema.get("format") == "date-time" and not _TIME.fullmatch(value):
        yield FieldError(path, f'{path} in body must be of type date-time: "{value}"', value)
    pattern = schema.get("pattern")
    if pattern and not _matches(value, pattern):
        yield FieldError(path, f"{path} in body should match '{pattern}'", value)


def _list_errors(schema: Schema, value: list[Any], path: str, old: Any) -> Iterator[FieldError]:
    if len(value) < schema.get("minItems", 0):
        yield FieldError(path, f"{path} in body should have at least {schema['minItems']} items", len(value))
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield FieldError(path, f"must have at most {schema['maxItems']} items", len(value), "FieldValueTooMany")
    yield from _duplicates(schema, value, path)
    items = schema.get("items")
    if isinstance(items, Mapping):
        known = old if isinstance(old, list) and len(old) <= _FEW_ITEMS else ()
        for at, item in enumerate(value):
            if not any(_is_same(item, before) for before in known):
                yield from _errors(items, item, f"{path}[{at}]")


def _duplicates(schema: Schema, value: list[Any], path: str) -> Iterator[FieldError]:
    """Items of a set are unique, those of a list of maps by their keys."""
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: set[bytes] = set()
    for at, item in enumerate(value):
        if kind == "map" and isinstance(item, dict):
            item = {key: item[key] for key in keys if key in item}
        text = msgspec.json.encode(item)
        if text in seen:
            yield FieldError(f"{path}[{at}]", "", item, "FieldValueDuplicate")
        seen.add(text)


def _object_errors(schema: Schema, value: dict[str, Any], path: str, old: Any) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    most = schema.get("maxProperties")
    if most is not None and len(value) > most:
        yield FieldError(path, f"must have at most {most} items", len(value), "FieldValueTooMany")
    if len(value) < schema.get("minProperties", 0):
        yield FieldError(path, f"{path} in body should have at least {schema['minProperties']} properties", len(value))
    for field in schema.get("required") or ():
        if field not in value:
            yield FieldError(f"{path}.{field}" if path else field, type="FieldValueRequired")
    for field, item in value.items():
        below = properties.get(field, others)
        # The API server drops a null where nothing may be null, so that it counts as absent.
        is_present = item is not None or field in (schema.get("required") or ())
        before = old.get(field) if isinstance(old, Mapping) else None
        if is_present and isinstance(below, Mapping) and (before is None or not _is_same(item, before)):
            yield from _errors(below, item, f"{path}.{field}" if path else field, before)


def _matches(value: str, pattern: str) -> bool:
    """By RE2, as in the API server: a pattern of somebody's cannot take for ever. One that is none is not judged."""
    try:
        return is_found(value, pattern)
    except BadPattern:
        return True
