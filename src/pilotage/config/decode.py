"""Strict decoding of located values into frozen dataclasses (and the model's structs), by their type hints.

Names are camelCase in files. Unknown keys, wrong types, missing fields and values that the class itself complains about
are collected, never only the first of them: what could not be read counts as not given while the rest is looked at.
`null` means "not given", as in Kubernetes. A hint can be: bool, int, float, str, Duration, Literal, Enum, X | Y,
X | None, tuple[X, ...], Mapping[str, X], Any, a dataclass, a struct, Located (the value as it was read), or Place
(where its owner stands; not read but filled in).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from pilotage.config.located import Located
from pilotage.config.problems import Problem
from pilotage.model.durations import DurationText, parse_duration
from pilotage.model.suggestions import suggestion

T = TypeVar("T")

_INT64: Final = range(-(2**63), 2**63)
_ABSENT: Final = object()
"""In place of a value that could not be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldPlace:
    """Where something was read: for problems that only show when it is put to use."""

    line: int = 0
    path: str = ""

    def problem(self, message: str, field: str = "") -> Problem:
        return Problem(self.line, _below(self.path, field) if field else self.path, message)


def decode(cls: type[T], source: Located, problems: list[Problem], path: str = "") -> T | None:
    """An instance; or None, and at least one more problem. The values are checked by its own `problems()`."""
    before = len(problems)
    instance = decode_partly(cls, source, problems, path)
    return None if len(problems) > before else instance


def decode_partly(cls: type[T], source: Located, problems: list[Problem], path: str = "") -> T | None:
    """As `decode`, but with what could be read even if there are problems, to look for more of them in it."""
    found: list[Problem] = []
    instance = _Decoder(found).read(cls, source, path)
    if hasattr(instance, "problems"):
        unread = [problem.path for problem in found]
        for field, message in instance.problems():
            below = f"{path}.{field}" if path and field else path or field
            if not any(below.startswith(other) or other.startswith(below) for other in unread):
                found.append(Problem(source.line_of(field), below, message))
    problems += found
    return None if instance is _ABSENT else typing.cast(T, instance)


def unreadable_fields(cls: type, path: str = "") -> Iterator[tuple[str, Any]]:
    """Fields whose type hints cannot be read from a file, with their hints; `cls` must not contain itself."""
    for field in (_fields_of(cls) or {}).values():
        for hint in _parts(field.hint):
            here = _below(path, field.attribute)
            if hint in _SIMPLE or (isinstance(hint, type) and issubclass(hint, Enum)):
                continue
            if _fields_of(hint) is None:
                yield here, hint
            else:
                yield from unreadable_fields(hint, here)


def stands_in_files(field: dataclasses.Field[Any]) -> bool:
    """Those whose metadata deny it are decided by feature gates alone."""
    return bool(field.metadata.get("stands in files", True))


def name_in_files(field: dataclasses.Field[Any]) -> str:
    """In camelCase, unless the field says that it has another name."""
    return str(field.metadata.get("name") or camel(field.name))


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@dataclasses.dataclass(frozen=True, slots=True)
class _FieldDecoder:
    attribute: str
    hint: Any
    is_required: bool
    is_place: bool


_SIMPLE: Final = (bool, int, float, str, type(None), Any, Located, FieldPlace)


def _parts(hint: Any) -> Iterator[Any]:
    """The hints that a hint is made of, down to those that are read as one value."""
    origin = get_origin(hint)
    if origin is Literal:
        yield str
    elif origin is Annotated:
        yield from _parts(get_args(hint)[0])
    elif origin in (Union, types.UnionType, tuple, dict, Mapping):
        for part in get_args(hint):
            yield from _parts(part) if part is not Ellipsis else ()
    else:
        yield hint


class _Decoder:
    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems

    def read(self, hint: Any, source: Located, path: str) -> Any:
        origin = get_origin(hint)
        if hint is Any:
            return source.plain()
        if hint is Located:
            return source
        if origin is Annotated:
            return self._annotated(hint, source, path)
        if origin in (Union, types.UnionType):
            return self._union(get_args(hint), source, path)
        if origin is Literal:
            return self._choice({str(name): name for name in get_args(hint)}, source, path)
        if origin is tuple:
            return self._items(get_args(hint)[0], source, path)
        if origin in (dict, Mapping):
            return self._mapping(get_args(hint), source, path)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._choice({str(member.value): member for member in hint}, source, path)
        if _fields_of(hint) is not None:
            return self._object(hint, source, path)
        return self._scalar(hint, source, path)

    def _annotated(self, hint: Any, source: Located, path: str) -> Any:
        base, *marks = get_args(hint)
        if not any(isinstance(mark, DurationText) for mark in marks):
            return self.read(base, source, path)
        if not isinstance(source.value, str):
            return self._mismatch("a duration such as 15s", source, path)
        try:
            return parse_duration(source.value)
        except ValueError as error:
            return self._reject(source, path, str(error))

    def _union(self, hints: Sequence[Any], source: Located, path: str) -> Any:
        if source.value is None and type(None) in hints:
            return None
        members = [hint for hint in hints if hint is not type(None)]
        fitting = [hint for hint in members if len(members) == 1 or _has_shape_of(hint, source)]
        if not fitting:
            return self._mismatch(" or ".join(map(_in_words, members)), source, path)
        return self.read(fitting[0], source, path)

    def _choice(self, choices: Mapping[str, Any], source: Located, path: str) -> Any:
        if isinstance(source.value, str) and source.value in choices:
            return choices[source.value]
        if not isinstance(source.value, str):
            return self._mismatch("a string", source, path)
        supported = ", ".join(f'"{name}"' for name in choices)
        near = suggestion(source.value, choices)
        return self._reject(source, path, f'Unsupported value: "{source.value}"{near}: supported values: {supported}')

    def _items(self, hint: Any, source: Located, path: str) -> Any:
        if source.value is None:
            return ()
        if not isinstance(source.value, tuple):
            return self._mismatch("a list", source, path)
        items = tuple(self.read(hint, item, f"{path}[{at}]") for at, item in enumerate(source.value))
        return _ABSENT if any(item is _ABSENT for item in items) else items

    def _mapping(self, hints: Sequence[Any], source: Located, path: str) -> Any:
        if source.value is None:
            return {}
        if not isinstance(source.value, Mapping):
            return self._mismatch("an object", source, path)
        key_hint, hint = hints
        known = get_args(key_hint) if get_origin(key_hint) is Literal else None
        found = {}
        for key, item in source.value.items():
            below = _below(path, key)
            if known is not None and key not in known:
                self._unknown(item, below, key, known)
            else:
                found[key] = self.read(hint, item, below)
        return {key: value for key, value in found.items() if value is not _ABSENT}

    def _object(self, cls: type, source: Located, path: str) -> Any:
        fields = _fields_of(cls)
        assert fields is not None
        if not isinstance(source.value, Mapping):
            return self._mismatch("an object", source, path)
        place = FieldPlace(source.line, path)
        values: dict[str, Any] = {field.attribute: place for field in fields.values() if field.is_place}
        for key, item in source.value.items():
            field = fields.get(key)
            if field is None or field.is_place:
                self._unknown(item, _below(path, key), key, [name for name in fields if not fields[name].is_place])
            elif item.value is not None:
                values[field.attribute] = self.read(field.hint, item, _below(path, key))
        for name, field in fields.items():
            if field.is_required and field.attribute not in values:
                values[field.attribute] = self._reject(source, _below(path, name), "Required value")
        return self._instance(cls, values, source, path)

    def _instance(self, cls: type, values: dict[str, Any], source: Located, path: str) -> Any:
        fields = _fields_of(cls) or {}
        if any(field.is_required and values[field.attribute] is _ABSENT for field in fields.values()):
            return _ABSENT
        try:
            return cls(**{name: value for name, value in values.items() if value is not _ABSENT})
        except ValueError as error:  # the class's own check of its values
            return self._reject(source, path, str(error))

    def _scalar(self, hint: Any, source: Located, path: str) -> Any:
        value = source.value
        if hint is bool and isinstance(value, bool):
            return value
        if hint is str and isinstance(value, str):
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if hint is float and is_number:
            return float(typing.cast(float, value))
        if hint is int and is_number and isinstance(value, int):
            return value if value in _INT64 else self._reject(source, path, f"{value} is too large a number")
        if hint not in (bool, str, float, int):
            raise TypeError(f"{path}: a field of type {hint!r} cannot be read from a configuration file")
        return self._mismatch(_in_words(hint), source, path)

    def _mismatch(self, wanted: str, source: Located, path: str) -> Any:
        got = description(source)
        quotes = (
            " (put it in quotes)" if wanted == "a string" and got.partition(" ")[0] in ("number", "boolean") else ""
        )
        return self._reject(source, path, f"expected {wanted}, got {got}{quotes}")

    def _unknown(self, source: Located, path: str, key: str, known: Sequence[str]) -> None:
        self._reject(source, path, f"unknown field{suggestion(key, known)}")

    def _reject(self, source: Located, path: str, message: str) -> Any:
        self._problems.append(Problem(source.line, path, message))
        return _ABSENT


@lru_cache(maxsize=512)
def _fields_of(cls: Any) -> dict[str, _FieldDecoder] | None:
    """The fields of a dataclass or a struct by their names in files; None if it is neither."""
    if dataclasses.is_dataclass(cls):
        hints = typing.get_type_hints(cls, include_extras=True)
        return {
            name_in_files(field): _FieldDecoder(
                field.name,
                hints[field.name],
                field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
                hints[field.name] is FieldPlace,
            )
            for field in dataclasses.fields(cls)
            if field.init and stands_in_files(field)
        }
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        hints = typing.get_type_hints(cls, include_extras=True)
        return {
            field.encode_name: _FieldDecoder(field.name, hints[field.name], field.required, False)
            for field in msgspec.structs.fields(cls)
        }
    return None


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _has_shape_of(hint: Any, source: Located) -> bool:
    """Whether a value is the kind of JSON that a member of a union is written as."""
    shapes = {"a string": str, "a boolean": bool, "an integer": int, "a number": int | float, "a list": tuple}
    wanted = shapes.get(_in_words(hint), Mapping)
    is_bool = isinstance(source.value, bool)
    return isinstance(source.value, wanted) and is_bool == (wanted is bool)


def _in_words(hint: Any) -> str:
    words = {str: "a string", bool: "a boolean", int: "an integer", float: "a number"}
    if hint in words:
        return words[hint]
    origin = get_origin(hint)
    if origin is Annotated or origin is Literal:
        return "a string"
    return "a list" if origin is tuple else "an object"


def description(source: Located) -> str:
    """What a value is, in words."""
    match source.value:
        case None:
            return "nothing"
        case bool(value):
            return f"boolean {str(value).lower()}"
        case int(value) | float(value):
            return f"number {value}"
        case str(value):
            return f'string "{value}"'
        case tuple():
            return "a list"
    return "an object"
