"""Removal of null fields and empty collections, which in a built-in object mean the same as absent ones.

People write `creationTimestamp: null` or leave a YAML key empty; the API server forgets such fields when it decodes.
Readers of stored objects rely on that. Most objects hold no null, so the search for one happens on the encoded form,
which is far cheaper than a walk.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from pilotage.sandbox.kinds.api_schemas import OBJECT_META, api_schemas, built_in_name, element, is_required

_encode = msgspec.json.Encoder().encode

# Below these keys stand documents of other parties, in which null may mean something.
_FOREIGN: Final = frozenset({"opaque", "fieldsV1"})


def drop_nulls(obj: dict[str, Any]) -> None:
    """Remove every field whose value is null, in place; elements of lists stay."""
    try:
        may_hold_null = b"null" in _encode(obj)
    except (UnicodeEncodeError, RecursionError):
        # No JSON text, but an object from inside the process may hold such strings: storing it will fail, not this.
        may_hold_null = False
    if may_hold_null:
        _drop(obj)


def _drop(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, child in value.items() if child is None]:
            del value[key]
        for key, child in value.items():
            if key not in _FOREIGN:
                _drop(child)
    elif isinstance(value, list):
        for child in value:
            _drop(child)


def drop_empties(api_version: str, kind: str, obj: dict[str, Any]) -> None:
    """Remove the lists and maps that hold nothing, in place; an empty object may say something, and stays."""
    name = built_in_name(api_version, kind)
    if name is not None:
        _drop_empties(name, obj)


def drop_empty_metadata(metadata: dict[str, Any]) -> None:
    _drop_empties(OBJECT_META, metadata)


def _drop_empties(name: str, obj: dict[str, Any]) -> None:
    collections, below = _collections(name)
    for field in collections.intersection(obj):
        if type(obj[field]) in (list, dict) and not obj[field]:
            del obj[field]
    for field in below.keys() & obj.keys():
        value, inner = obj[field], below[field]
        if type(value) is list:
            for item in value:
                if type(item) is dict:
                    _drop_empties(inner, item)
        elif type(value) is dict:
            _drop_empties(inner, value)


@cache
def _collections(name: str) -> tuple[frozenset[str], dict[str, str]]:
    """The fields of a type that are lists or maps and may be absent, and the types of objects in its fields."""
    fields = api_schemas()[name]
    parts = {field: element(code) for field, code in fields.items()}
    collections = {field for field, (container, _) in parts.items() if container and not is_required(fields[field])}
    is_open = name == "v1.JSONSchemaProps"
    below = {
        field: inner for field, (container, inner) in parts.items() if inner in api_schemas() and container != "map"
    }
    return frozenset() if is_open else frozenset(collections), {} if is_open else below
