"""Objects of custom kinds against the OpenAPI schema of their definition: defaults and the common rules.

Defaults, types, required fields, enums, bounds, lengths, patterns and int-or-string are honoured, at any depth.
Not judged: CEL rules (`x-kubernetes-validations`), `format`, and the logical junctors (`anyOf`, `oneOf`, `allOf`,
`not`): what only they forbid is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import FieldError

Schema = Mapping[str, Any]

_JSON_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}


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


def schema_errors(schema: Schema, obj: Mapping[str, Any]) -> list[FieldError]:
    """What the schema forbids about the object; metadata is judged elsewhere."""
    judged = {field: value for field, value in obj.items() if field not in ("apiVersion", "kind", "metadata")}
    exempt = {"required": [f for f in schema.get("required") or () if f not in ("apiVersion", "kind", "metadata")]}
    return list(_errors({**schema, **exempt}, judged, ""))


def _errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
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
        yield from _list_errors(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_errors(schema, value, path)


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
    if least is not None and (value < least or (schema.get("exclusiveMinimum") is True and value == least)):
        yield FieldError(path, f"{path} in body should be greater than or equal to {least}", value)
    if most is not None and (value > most or (schema.get("exclusiveMaximum") is True and value == most)):
        yield FieldError(path, f"{path} in body should be less than or equal to {most}", value)


def _text_errors(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minLength", 0):
        yield FieldError(path, f"{path} in body should be at least {schema['minLength']} chars long", value)
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield FieldError(path, f"may not be more than {schema['maxLength']} bytes", value)
    pattern = schema.get("pattern")
    if pattern:
        compiled = _compiled(pattern)
        if compiled is not None and not compiled.search(value):
            yield FieldError(path, f"{path} in body should match '{pattern}'", value)


def _list_errors(schema: Schema, value: list[Any], path: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minItems", 0):
        yield FieldError(path, f"{path} in body should have at least {schema['minItems']} items", len(value))
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield FieldError(path, f"must have at most {schema['maxItems']} items", len(value))
    items = schema.get("items")
    if isinstance(items, Mapping):
        for at, item in enumerate(value):
            yield from _errors(items, item, f"{path}[{at}]")


def _object_errors(schema: Schema, value: dict[str, Any], path: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for field in schema.get("required") or ():
        if field not in value:
            yield FieldError(f"{path}.{field}" if path else field, type="FieldValueRequired")
    for field, item in value.items():
        below = properties.get(field, others)
        # The API server drops a null where nothing may be null, so that it counts as absent.
        is_present = item is not None or field in (schema.get("required") or ())
        if is_present and isinstance(below, Mapping):
            yield from _errors(below, item, f"{path}.{field}" if path else field)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """None for a pattern of Go's dialect that Python does not know: it is then not judged."""
    try:
        return re.compile(pattern)
    except re.error:
        return None
