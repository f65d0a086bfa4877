"""Objects of custom kinds against the OpenAPI schema of their definition: defaults and the common rules.

Defaults, types, required fields, enums, bounds, lengths, patterns, int-or-string, and what makes items of lists unique
are honoured, at any depth; of `format` integers and times. `schema_types` sees quickly that nothing is wrong, and
`schema_rules` judges by CEL. Not judged: the logical junctors (`anyOf`, `oneOf`, `allOf`, `not`): what only they forbid
is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.kinds.schema_rules import SchemaRules
from pilotage.sandbox.kinds.schema_types import INTEGER_FORMATS, TIME, Check, matches, quick_check

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
_OF_EVERY_OBJECT: Final = frozenset({"apiVersion", "kind", "metadata"})
_OF_MAPS: Final = frozenset({"additionalProperties", "maxProperties", "minProperties"})
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


class ObjectRules:
    """What the schema of a custom kind demands of its objects. Their metadata is judged elsewhere."""

    def __init__(self, schema: Schema) -> None:
        parts = {name: part for name, part in (schema.get("properties") or {}).items() if name not in _OF_EVERY_OBJECT}
        required = [field for field in schema.get("required") or () if field not in _OF_EVERY_OBJECT]
        self._schema = {**schema, "properties": parts, "required": required}
        self._rules = SchemaRules(schema)

    def errors(self, obj: Json, old: Json | None = None) -> list[FieldError]:
        """What is forbidden about the object; `old` is the one that it replaces."""
        errors = self.schema_errors(obj, old)
        if self._rules.is_empty:
            return errors
        if any(error.type in _BLOCKING for error in errors):
            return [*errors, _NOT_CHECKED]
        return [*errors, *self._rules.errors(obj, old)]

    def schema_errors(self, obj: Json, old: Json | None = None) -> list[FieldError]:
        """The same without the rules in CEL.

        Fields that are as they were in `old` are not judged again: the API server also bears what was stored already.
        """
        judged = {field: value for field, value in obj.items() if field not in _OF_EVERY_OBJECT}
        if self._is_valid(judged, old or {}):
            return []
        errors: list[FieldError] = []
        _judge(self._schema, judged, "", old, errors)
        return errors

    def _is_valid(self, obj: Json, old: Json) -> bool:
        """Whether a quick look decides already."""
        return (
            not self._schema.keys() & _OF_MAPS
            and all(obj.get(field) is not None for field in self._schema["required"])
            and all(
                value is None or value is old.get(field) or self._is_valid_part(field, value)
                for field, value in obj.items()
            )
        )

    def _is_valid_part(self, field: str, value: Any) -> bool:
        check = self._checks.get(field)
        return check is None or check(value)

    @cached_property
    def _checks(self) -> Mapping[str, Check]:
        """Made when they are first asked: of many kinds nothing is ever written."""
        parts = self._schema["properties"].items()
        return {field: quick_check(part) for field, part in parts if isinstance(part, Mapping)}


def _judge(schema: Schema, value: Any, path: str, old: Any, errors: list[FieldError]) -> None:
    """Append what is wrong with the value: every field of every write passes here."""
    if value is None and schema.get("nullable"):
        return
    kind = _JSON_TYPES.get(type(value), "object")
    if schema.get("type") != kind and (wrong_type := _type_error(schema, value, kind, path)) is not None:
        errors.append(wrong_type)
        return
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        supported = ", ".join(_encode(item).decode() for item in allowed)
        errors.append(FieldError(path, f"supported values: {supported}", value, "FieldValueNotSupported"))
    if kind == "string":
        errors.extend(_text_errors(schema, value, path))
    elif kind == "object":
        _judge_object(schema, value, path, old, errors)
    elif kind == "array":
        _judge_list(schema, value, path, old, errors)
    elif kind in ("integer", "number"):
        errors.extend(_bound_errors(schema, value, path))


def _is_same(value: Any, before: Any) -> bool:
    """Equal, and of the same types: to Python 1 is True."""
    return value is before or (bool(value == before) and _encode(value) == _encode(before))


def _type_error(schema: Schema, value: Any, actual: str, path: str) -> FieldError | None:
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


def _bound_errors(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    least, most = schema.get("minimum"), schema.get("maximum")
    limit = INTEGER_FORMATS.get(str(schema.get("format")))
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
    if schema.get("format") == "date-time" and not TIME.fullmatch(value):
        yield FieldError(path, f'{path} in body must be of type date-time: "{value}"', value)
    pattern = schema.get("pattern")
    if pattern and not matches(value, pattern):
        yield FieldError(path, f"{path} in body should match '{pattern}'", value)


def null_errors(schema: Schema, value: Any, path: str = "") -> Iterator[FieldError]:
    """Fields that are null where nothing may be: dropped from what clients send, but not from what is applied."""
    if value is None and not schema.get("nullable"):
        error = _type_error(schema, value, "null", path)
        if error is not None:
            yield error
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for at, item in enumerate(value):
            yield from null_errors(schema["items"], item, f"{path}[{at}]")
    elif isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for field, item in value.items():
            below = properties.get(field, others)
            if isinstance(below, dict) and (path or field != "metadata"):
                yield from null_errors(below, item, f"{path}.{field}" if path else field)


def _judge_list(schema: Schema, value: list[Any], path: str, old: Any, errors: list[FieldError]) -> None:
    if len(value) < schema.get("minItems", 0):
        problem = f"{path} in body should have at least {schema['minItems']} items"
        errors.append(FieldError(path, problem, len(value)))
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        problem = f"must have at most {schema['maxItems']} items"
        errors.append(FieldError(path, problem, len(value), "FieldValueTooMany"))
    errors.extend(_duplicates(schema, value, path))
    items = schema.get("items")
    if isinstance(items, dict):
        known = old if isinstance(old, list) and len(old) <= _FEW_ITEMS else ()
        for at, item in enumerate(value):
            if not any(_is_same(item, before) for before in known):
                _judge(items, item, f"{path}[{at}]", None, errors)


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
        text = _encode(item)
        if text in seen:
            yield FieldError(f"{path}[{at}]", "", item, "FieldValueDuplicate")
        seen.add(text)


def _judge_object(schema: Schema, value: dict[str, Any], path: str, old: Any, errors: list[FieldError]) -> None:
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    required = schema.get("required") or ()
    most = schema.get("maxProperties")
    if most is not None and len(value) > most:
        errors.append(FieldError(path, f"must have at most {most} items", len(value), "FieldValueTooMany"))
    if len(value) < schema.get("minProperties", 0):
        problem = f"{path} in body should have at least {schema['minProperties']} properties"
        errors.append(FieldError(path, problem, len(value)))
    start = f"{path}." if path else ""
    errors.extend(FieldError(start + field, type="FieldValueRequired") for field in required if field not in value)
    for field, item in value.items():
        below = properties.get(field, others)
        # The API server drops a null where nothing may be null, so that it counts as absent.
        if not isinstance(below, dict) or (item is None and field not in required):
            continue
        before = old.get(field) if isinstance(old, dict) else None
        if before is None or not _is_same(item, before):
            _judge(below, item, start + field, before, errors)
