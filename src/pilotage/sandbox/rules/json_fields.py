"""Access to fields of unchecked JSON: a wrong type reads as absent, never as an exception."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def dict_or_empty(value: Any) -> Json:
    """`value` if it is an object, else an empty one (not stored anywhere)."""
    return value if type(value) is dict else {}


def dicts_in(parent: Any, key: str) -> list[Json]:
    """The objects in the list `parent[key]`; nothing when there is no such list."""
    if type(parent) is not dict:
        return []
    items = parent.get(key)
    return [item for item in items if type(item) is dict] if type(items) is list else []


def text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def nested(parent: Any, *keys: str) -> Any:
    """`parent[a][b]...`, None where something is missing or not an object."""
    for key in keys:
        if type(parent) is not dict:
            return None
        parent = parent.get(key)
    return parent


def child(parent: Json, key: str) -> Json:
    """The object `parent[key]`, made if it is missing; a throw-away one if something else stands there."""
    value = parent.get(key)
    if value is None:
        value = parent[key] = {}
    return value if type(value) is dict else {}


def fill(target: Json, defaults: tuple[tuple[str, Any], ...]) -> None:
    """Set the fields that are absent or null. Default values must be scalars: they are shared."""
    for key, value in defaults:
        if target.get(key) is None:
            target[key] = value
