"""Strategic merge patch: kubectl's default way to change a built-in object.

The patch looks like a part of the object. Objects merge field by field, null removes a field, and lists merge by the
keys of `merge_keys`. Directives inside the patch change that:

    $patch: replace | delete | merge          on an object, or on an element of a keyed list
    $deleteFromPrimitiveList/x: [...]         removes scalars from the list x
    $setElementOrder/x: [...]                 orders the merged list x
    $retainKeys: [...]                        drops all other keys of the object

`merge` works in place on a private copy of the object and adopts parts of the (freshly decoded) patch, so neither
may be used by the caller afterwards. What is wrong with a patch is told by `MergeError`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from pilotage.sandbox.rules.merge_keys import ORDINARY, Fields

Json = dict[str, Any]

_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_SET_ORDER: Final = "$setElementOrder/"


class MergeError(ValueError):
    """The patch cannot be merged; the text says where and why."""


def merge(target: Json, patch: Json, fields: Fields, path: str = "") -> Json:
    """`target` with `patch` merged into it; both are consumed."""
    directive = patch.pop("$patch", None)
    if directive is not None and directive != "merge":
        return _directed(directive, patch, fields, path)
    if "$retainKeys" in patch:
        _retain_keys(target, patch, path)
    orders: list[tuple[str, Any]] = []
    for key, value in patch.items():
        if key[:1] == "$":
            _read_directive(target, key, value, orders, path)
        elif value is None:
            target.pop(key, None)
        elif isinstance(value, dict | list):
            _merge_field(target, key, value, fields.below.get(key, ORDINARY), path)
        else:
            target[key] = value
    for key, order in orders:
        _reorder(target, key, order, fields.below.get(key, ORDINARY), path)
    return target


def _directed(directive: Any, patch: Json, fields: Fields, path: str) -> Json:
    if directive == "replace":
        return merge({}, patch, fields, path)
    if directive == "delete":
        return {}
    raise MergeError(f"{path or 'patch'}: unknown $patch directive {directive!r}: expected delete, replace or merge")


def _retain_keys(target: Json, patch: Json, path: str) -> None:
    keys = patch.pop("$retainKeys")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise MergeError(f"{path or 'patch'}: $retainKeys must be a list of field names")
    missing = [key for key in patch if key[:1] != "$" and patch[key] is not None and key not in keys]
    if missing:
        raise MergeError(f"{path or 'patch'}: $retainKeys does not list the patched field {missing[0]!r}")
    for key in [key for key in target if key not in keys]:
        del target[key]


def _read_directive(target: Json, key: str, value: Any, orders: list[tuple[str, Any]], path: str) -> None:
    if not isinstance(value, list):
        raise MergeError(f"{_join(path, key)}: expected a list")
    if key.startswith(_DELETE_FROM):
        _delete_scalars(target, key[len(_DELETE_FROM) :], value)
    elif key.startswith(_SET_ORDER):
        orders.append((key[len(_SET_ORDER) :], value))
    else:
        raise MergeError(f"{_join(path, key)}: unknown directive")


def _delete_scalars(target: Json, key: str, unwanted: list[Any]) -> None:
    current = target.get(key)
    if isinstance(current, list):
        target[key] = [item for item in current if item not in unwanted]


def _merge_field(target: Json, key: str, value: Json | list[Any], fields: Fields, path: str) -> None:
    if isinstance(value, dict):
        current = target.get(key)
        if not isinstance(current, dict) or fields.is_replaced:
            current = {}
        # A deleted object disappears: an empty one would count as set for many fields.
        if value.get("$patch") == "delete":
            target.pop(key, None)
        else:
            target[key] = merge(current, value, fields, _join(path, key))
    else:
        current = target.get(key)
        if not isinstance(current, list):
            current = []
        target[key] = _merge_list(current, value, fields, _join(path, key))


def _merge_list(current: list[Any], patch: list[Any], fields: Fields, path: str) -> list[Any]:
    if fields.is_union:
        union = {_stored_name(item, fields): item for item in current}
        for item in patch:
            union.setdefault(_element_name(item, fields, path), item)
        return list(union.values())
    if not fields.merge_key:
        return patch
    if any(_is_directed(item, "replace") for item in patch):
        current, patch = [], [item for item in patch if not _is_directed(item, "replace")]
    names = [_element_name(item, fields, f"{path}[{position}]") for position, item in enumerate(patch)]
    unwanted = {name for name, item in zip(names, patch, strict=True) if _is_directed(item, "delete")}
    merged = [item for item in current if _stored_name(item, fields) not in unwanted] if unwanted else current
    places = {_stored_name(item, fields): place for place, item in enumerate(merged)}
    element = Fields(fields.below)
    for position, (name, item) in enumerate(zip(names, patch, strict=True)):
        if _is_directed(item, "delete"):
            continue
        place = places.setdefault(name, len(merged))
        if place == len(merged):
            merged.append({})
        merged[place] = merge(merged[place], item, element, f"{path}[{position}]")
    return merged


def _is_directed(item: Any, directive: str) -> bool:
    return isinstance(item, dict) and item.get("$patch") == directive


def _element_name(item: Any, fields: Fields, path: str) -> Any:
    """What identifies an element of a merging list."""
    if not fields.merge_key:
        return _scalar(item, path)
    if not isinstance(item, dict):
        raise MergeError(f"{path}: expected an object with the merge key {fields.merge_key!r}")
    if fields.merge_key not in item:
        raise MergeError(f"{path}: does not contain the merge key {fields.merge_key!r}")
    return _scalar(item[fields.merge_key], f"{path}.{fields.merge_key}")


def _stored_name(item: Any, fields: Fields) -> Any:
    """As `_element_name`; an element that has no name is no reason to refuse a patch of its neighbours."""
    try:
        return _element_name(item, fields, "")
    except MergeError:
        return object()


def _scalar(value: Any, path: str) -> Any:
    if isinstance(value, dict | list):
        raise MergeError(f"{path}: expected a string, number or boolean")
    # True == 1 in Python, not in JSON.
    return (value,) if isinstance(value, bool) else value


def _reorder(target: Json, key: str, order: list[Any], fields: Fields, path: str) -> None:
    """Put the listed elements into the given order; the others keep their place relative to their neighbours.

    An unlisted element goes before the next listed one unless the stored list had them the other way round.
    """
    current = target.get(key)
    if not isinstance(current, list) or not (fields.merge_key or fields.is_union):
        return
    names = [_stored_name(item, fields) for item in current]
    wanted = [_element_name(item, fields, _join(path, _SET_ORDER + key)) for item in order]
    ranks = {name: rank for rank, name in enumerate(wanted)}
    listed = sorted((at for at, name in enumerate(names) if name in ranks), key=lambda at: ranks[names[at]])
    others = deque(at for at, name in enumerate(names) if name not in ranks)
    ordered: list[Any] = []
    for at in listed:
        while others and others[0] < at:
            ordered.append(current[others.popleft()])
        ordered.append(current[at])
    target[key] = ordered + [current[at] for at in others]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
