"""Field validation on request: which fields of an object does its kind not know?

kubectl asks for `fieldValidation=Strict`, so that `kubectl apply` rejects `replcas: 3` instead of storing it. Built-in
kinds are held against the API schemas, custom ones against the schema of their definition; a part that keeps unknown
fields on purpose (`x-kubernetes-preserve-unknown-fields`) has none. A field that is there twice is reported likewise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pilotage.sandbox.kinds.api_schemas import OBJECT_META, SCALARS, api_schemas, element, schema_name
from pilotage.sandbox.kinds.kueue_schemas import schema_of
from pilotage.sandbox.kinds.resources import ResourceType

_MOST_REPORTED: Final = 20


def unknown_fields(resource_type: ResourceType, obj: Mapping[str, Any]) -> list[str]:
    """Paths of unknown fields, in the order in which they are met (at most twenty)."""
    name = schema_name(resource_type)
    if name is not None:
        found = _in_type(name, obj, "")
    else:
        found = _in_custom(schema_of(resource_type), obj)
    return [path for path, _ in zip(found, range(_MOST_REPORTED), strict=False)]


def repeated_keys(body: bytes) -> list[str]:
    """Paths of the keys that stand more than once in an object of a JSON text (at most twenty)."""
    found = _repeated(json.loads(body, object_pairs_hook=_Pairs), "")
    return [path for path, _ in zip(found, range(_MOST_REPORTED), strict=False)]


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, as often as they are there."""


def _repeated(value: object, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        met = set()
        for key, below in value:
            below_path = f"{path}.{key}" if path else key
            if key in met:
                yield below_path
            met.add(key)
            yield from _repeated(below, below_path)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _repeated(item, f"{path}[{at}]")


def _in_type(name: str, value: object, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping) or name == "v1.JSONSchemaProps":
        return
    fields = api_schemas()[name]
    for field, below in value.items():
        below_path = f"{path}.{field}" if path else str(field)
        code = fields.get(field)
        if code is None:
            yield below_path
        else:
            yield from _in_value(code, below, below_path)


def _in_value(code: str, value: object, path: str) -> Iterator[str]:
    container, inner = element(code)
    if inner in SCALARS:
        return
    if container == "list":
        for at, item in enumerate(value if isinstance(value, list) else ()):
            yield from _in_value(inner, item, f"{path}[{at}]")
    elif container == "map":
        for key, item in value.items() if isinstance(value, Mapping) else ():
            yield from _in_value(inner, item, f"{path}.{key}")
    else:
        yield from _in_type(inner, value, path)


def _in_custom(schema: Mapping[str, Any] | None, obj: Mapping[str, Any]) -> Iterator[str]:
    yield from _in_type(OBJECT_META, obj.get("metadata"), "metadata")
    rest = {field: value for field, value in obj.items() if field not in ("apiVersion", "kind", "metadata")}
    if schema:
        yield from _in_schema(schema, rest, "")


def _in_schema(schema: Mapping[str, Any], value: object, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, list):
        items = schema.get("items")
        for at, item in enumerate(value if isinstance(items, Mapping) else ()):
            yield from _in_schema(items or {}, item, f"{path}[{at}]")
    if isinstance(value, Mapping):
        yield from _in_object_schema(schema, value, path)


def _in_object_schema(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[str]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    if schema.get("x-kubernetes-embedded-resource"):
        properties = {"apiVersion": {}, "kind": {}, "metadata": {}, **properties}
    for field, below in value.items():
        below_path = f"{path}.{field}" if path else str(field)
        known = properties.get(field)
        if isinstance(known, Mapping):
            # Below a property that says nothing of its own type, such as an embedded resource's metadata, all is fine.
            yield from _in_schema(known, below, below_path) if known else ()
        elif isinstance(others, Mapping):
            yield from _in_schema(others, below, below_path)
        elif not others:
            yield below_path
