"""Strategic merge patch: kubectl's default way to change a built-in object.

The patch looks like a part of the object. Objects merge field by field, null removes a field, and lists merge by the
keys of `merge_keys`. Directives inside the patch change that:

    $patch: replace | delete | merge          on an object, or on an element of a keyed list
    $deleteFromPrimitiveList/x: [...]         removes scalars from the list x
    $setElementOrder/x: [...]                 orders the merged list x
    $retainKeys: [...]                        drops all other keys of the object

`merge` works in place on a private copy of the object and adopts parts of the (freshly decoded) patch, so neither
may be used by the caller afterwards. `MergeError` says what is wrong with a patch.
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

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(problem)
        self._problem = problem
        self._where = where

    def __str__(self) -> str:
        return f"{self._where or 'patch'}: {self._problem}"

    def below(self, step: str) -> MergeError:
        """The same with one more step in front of the path; most merges go well and need no path at all."""
        between = "." if self._where and self._where[0] != "[" else ""
        return MergeError(self._problem, f"{step}{between}{self._where}")


def merge(target: Json, patch: Json, fields: Fields) -> Json:
    """`target` with `patch` merged into it; both are consumed."""
    directive = patch.pop("$patch", None)
    if directive is not None and directive != "merge":
        return _directed(directive, patch, fields)
    if "$retainKeys" in patch:
        _retain_keys(target, patch)
    # A list is put into order when all is merged, by what stood where before.
    orders = [(key, target.get(key[len(_SET_ORDER) :])) for key in patch if key.startswith(_SET_ORDER)]
    for key, value in patch.items():
        if key[:1] == "$":
            _read_directive(target, key, value)
        elif value is None:
            target.pop(key, None)
        elif isinstance(value, dict | list):
            try:
                _merge_field(target, key, value, fields.below.get(key, ORDINARY))
            except MergeError as error:
                raise error.below(key) from None
        else:
            target[key] = value
    for key, before in orders:
        field = key[len(_SET_ORDER) :]
        _reorder(target, field, patch[key], before, fields.below.get(field, ORDINARY))
    return target


def _directed(directive: Any, patch: Json, fields: Fields) -> Json:
    if directive == "replace":
        return merge({}, patch, fields)
    if directive == "delete":
        return {}
    raise MergeError(f"unknown $patch directive {directive!r}: expected delete, replace or merge")


def _retain_keys(target: Json, patch: Json) -> None:
    keys = patch.pop("$retainKeys")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise MergeError("$retainKeys must be a list of field names")
    missing = [key for key in patch if key[:1] != "$" and patch[key] is not None and key not in keys]
    if missing:
        raise MergeError(f"$retainKeys does not list the patched field {missing[0]!r}")
    for key in [key for key in target if key not in keys]:
        del target[key]


def _read_directive(target: Json, key: str, value: Any) -> None:
    if not isinstance(value, list):
        raise MergeError("expected a list", key)
    if key.startswith(_DELETE_FROM):
        _delete_scalars(target, key[len(_DELETE_FROM) :], value)
    elif not key.startswith(_SET_ORDER):
        raise MergeError("unknown directive", key)


def _delete_scalars(target: Json, key: str, unwanted: list[Any]) -> None:
    current = target.get(key)
    if isinstance(current, list):
        target[key] = [item for item in current if item not in unwanted]


def _merge_field(target: Json, key: str, value: Json | list[Any], fields: Fields) -> None:
    if isinstance(value, dict):
        current = target.get(key)
        if not isinstance(current, dict) or fields.is_replaced:
            current = {}
        # A deleted object disappears: an empty one would count as set for many fields.
        if value.get("$patch") == "delete":
            target.pop(key, None)
        else:
            target[key] = merge(current, value, fields)
    else:
        current = target.get(key)
        if not isinstance(current, list):
            current = []
        target[key] = _merge_list(current, value, fields)


def _merge_list(current: list[Any], patch: list[Any], fields: Fields) -> list[Any]:
    if fields.is_union:
        union = {_stored_name(item, fields): item for item in current}
        wanted = [_element_name(item, fields) for item in patch]
        for name, item in zip(wanted, patch, strict=True):
            union.setdefault(name, item)
        return _in_order(union, [_stored_name(item, fields) for item in current], wanted)
    if not fields.merge_key:
        return patch
    if any(_is_directed(item, "replace") for item in patch):
        current, patch = [], [item for item in patch if not _is_directed(item, "replace")]
    names = [_name_at(position, item, fields) for position, item in enumerate(patch)]
    unwanted = {name for name, item in zip(names, patch, strict=True) if _is_directed(item, "delete")}
    before = [(_stored_name(item, fields), item) for item in current]
    merged = {name: item for name, item in before if name not in unwanted}
    wanted = []
    for position, (name, item) in enumerate(zip(names, patch, strict=True)):
        if _is_directed(item, "delete"):
            continue
        wanted.append(name)
        try:
            merged[name] = merge(merged.get(name, {}), item, fields)
        except MergeError as error:
            raise error.below(f"[{position}]") from None
    return _in_order(merged, [name for name, _ in before], wanted)


def _in_order(elements: dict[Any, Any], before: list[Any], wanted: list[Any]) -> list[Any]:
    """The elements that a patch lists in its order, the others in theirs.

    One that is not listed goes before the next listed one if it stood before it; new ones stand behind nothing, and so
    come first.
    """
    places = {name: place for place, name in reversed(list(enumerate(before)))}
    listed = [name for name in dict.fromkeys(wanted) if name in elements]
    mentioned = set(listed)
    others = deque(name for name in elements if name not in mentioned)
    ordered: list[Any] = []
    for name in listed:
        while others and name in places and others[0] in places and places[others[0]] < places[name]:
            ordered.append(elements[others.popleft()])
        ordered.append(elements[name])
    return ordered + [elements[name] for name in others]


def _is_directed(item: Any, directive: str) -> bool:
    return isinstance(item, dict) and item.get("$patch") == directive


def _name_at(position: int, item: Any, fields: Fields) -> Any:
    try:
        return _element_name(item, fields)
    except MergeError as error:
        raise error.below(f"[{position}]") from None


def _element_name(item: Any, fields: Fields) -> Any:
    """What identifies an element of a merging list."""
    key = fields.merge_key
    if not key:
        return _scalar(item, "")
    if not isinstance(item, dict):
        raise MergeError(f"expected an object with the merge key {key!r}")
    if key not in item:
        raise MergeError(f"does not contain the merge key {key!r}")
    name = item[key]
    return name if type(name) is str else _scalar(name, key)


def _stored_name(item: Any, fields: Fields) -> Any:
    """As `_element_name`; an element that has no name is no reason to reject a patch of its neighbours."""
    try:
        return _element_name(item, fields)
    except MergeError:
        return object()


def _scalar(value: Any, where: str) -> Any:
    if isinstance(value, dict | list):
        raise MergeError("expected a string, number or boolean", where)
    # True == 1 in Python, not in JSON.
    return (value,) if isinstance(value, bool) else value


def _reorder(target: Json, key: str, order: list[Any], before: Any, fields: Fields) -> None:
    """Put the elements of a merged list into the given order."""
    current = target.get(key)
    if not isinstance(current, list) or not (fields.merge_key or fields.is_union):
        return
    try:
        wanted = [_element_name(item, fields) for item in order]
    except MergeError as error:
        raise error.below(_SET_ORDER + key) from None
    stood = [_stored_name(item, fields) for item in before] if isinstance(before, list) else []
    target[key] = _in_order({_stored_name(item, fields): item for item in current}, stood, wanted)
