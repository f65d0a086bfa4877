"""YAML read as Kubernetes reads it: every document becomes a JSON value.

YAML says more than JSON can carry, and PyYAML guesses more than Kubernetes does. Here `2026-01-01` and `22:22` stay
texts, `8080: x` gets the key "8080", a key that is written twice is an error instead of a lost line, and what has no
place in JSON (sets, binary data, infinite numbers, a value that contains itself) is refused with its path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"^(?:[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$")
_FLOAT: Final = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_GUESSED_OTHERWISE: Final = frozenset(f"{_TAG}{name}" for name in ("int", "float", "timestamp", "value"))
_MOST_VALUES: Final = 5_000_000
"""More than any real file; aliases within aliases can describe far more than a file's size suggests."""


class YamlError(ValueError):
    """What is wrong, on one line, without the name of the file."""


@dataclass(frozen=True, slots=True)
class Document:
    """`number` counts from 1 in the file, empty documents included."""

    number: int
    value: Any


def documents(text: str | bytes) -> Iterator[Document]:
    """The non-empty documents of a YAML stream; YamlError at the first that makes no sense."""
    number = 1
    try:
        for value in yaml.load_all(text, Loader=_Loader):
            if value is not None:
                yield Document(number, _Converter(number).json(value, ""))
            number += 1
    except YamlError:
        raise
    except yaml.YAMLError as error:
        raise YamlError(f"document {number}: {_position(error)}") from None
    except ValueError as error:
        raise YamlError(f"document {number}: {error}") from None
    except RecursionError:
        raise YamlError(f"document {number}: is nested too deeply") from None


class _Loader(yaml.CSafeLoader):
    """Safe, without guesses that Kubernetes does not make, strict about keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f'key "{key.value}" is there twice', key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _GUESSED_OTHERWISE]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+0123456789."))


class _Converter:
    """From what PyYAML built to JSON values."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._values = 0

    def json(self, value: Any, path: str) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise self._refused(path, "aliases make it too large")
        if value is None or isinstance(value, (str, bool, int)):
            return value
        if isinstance(value, dict):
            return {self._key(key, path): self.json(item, _below(path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.json(item, f"{path}[{at}]") for at, item in enumerate(value)]
        if isinstance(value, float) and math.isfinite(value):
            return value
        raise self._refused(path, f"a {type(value).__name__} has no place in a Kubernetes object")

    def _key(self, key: Any, path: str) -> str:
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, (str, int, float)):
            return str(key)
        raise self._refused(path, "a key must be a text")

    def _refused(self, path: str, problem: str) -> YamlError:
        return YamlError(f"document {self._number}: {path + ': ' if path else ''}{problem}")


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _position(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    what = " ".join(part for part in (error.problem, error.context) if part)
    return f"{where}is no valid YAML: {what}"
