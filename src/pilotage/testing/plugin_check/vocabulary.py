"""Words that mean something to a plugin: what random nodes and pods must talk about to be of interest to it.

A filter that wants the label `weather=sun` accepts no random node unless that label is put on one. The words are
taken from where the author wrote them: the string constants of the plugin's methods and of its module, and the texts in
its arguments and attributes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from types import CodeType
from typing import Any, Final

import msgspec

_LABEL_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_RESOURCE: Final = re.compile(r"[a-z0-9.-]+\.[a-z0-9.-]+/[A-Za-z0-9._-]+")
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,30}[a-z0-9])?")
_MOST_WORDS: Final = 24
_USUAL_VALUES: Final = ("1", "2", "7", "true", "x")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What labels, annotations, taints and names are made of."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def resources(self) -> tuple[str, ...]:
        """Words that could be extended resources."""
        return tuple(key for key in self.keys if _RESOURCE.fullmatch(key) and "kubernetes.io/" not in key)

    @property
    def names(self) -> tuple[str, ...]:
        """Words with which the name of an object could begin."""
        return tuple(dict.fromkeys(word.strip("-") for word in self.values if _NAME.fullmatch(word)))


def vocabulary_of(plugin: object, args: Any = None) -> Vocabulary:
    """The words of a plugin, in a fixed order."""
    cls, own = type(plugin), getattr(plugin, "__dict__", {})
    words = list(dict.fromkeys([*_texts(args), *_texts(own), *_words_of_class(cls), *_words_of_module(cls)]))
    words.sort(key=lambda word: "/" not in word)  # surely meant as a key
    keys = [word for word in words if _LABEL_KEY.fullmatch(word)]
    values = [word for word in words if _LABEL_VALUE.fullmatch(word)]
    return Vocabulary(tuple(keys[:_MOST_WORDS]), (*values[:_MOST_WORDS], *_USUAL_VALUES))


def _words_of_class(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        if base.__module__.startswith("pilotage.api") or base is object:
            continue
        for name, value in vars(base).items():
            if name.startswith("__") and name != "__init__":
                continue
            function = inspect.unwrap(value) if callable(value) else value
            code = getattr(function, "__code__", None)
            yield from _texts(value) if code is None else _words_of_code(code)


def _words_of_code(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts[1:]:
        if isinstance(constant, CodeType):
            yield from _words_of_code(constant)
        else:
            yield from _texts(constant)


def _words_of_module(cls: type) -> Iterator[str]:
    module = sys.modules.get(cls.__module__)
    for name, value in vars(module).items() if module is not None else ():
        if not name.startswith("__"):
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    """The strings in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list | set | frozenset):
        yield from _all_texts(sorted(value, key=str) if isinstance(value, set | frozenset) else value)
    elif isinstance(value, dict):
        yield from _all_texts([*value.keys(), *value.values()])
    elif isinstance(value, msgspec.Struct):
        yield from _all_texts(msgspec.structs.astuple(value))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _all_texts([getattr(value, field.name) for field in fields(value)])


def _all_texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from _texts(value)
