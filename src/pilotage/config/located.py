"""YAML or JSON text as values that know their lines, so that a problem can be shown where it was written.

Scalars are read as Kubernetes reads them (`2026-01-01` and `22:22` are texts, 0x10 is a number). A key that is given
twice is a problem and not a lost line. Aliases and merge keys work; a value that contains itself, or that grows beyond
any sensible configuration by aliases, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from pilotage.config.problems import Problem

_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"^(?:[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$")
_FLOAT: Final = re.compile(
    r"^(?:[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)$"
)
_GUESSED_OTHERWISE: Final = frozenset(f"{_TAG}{name}" for name in ("int", "float", "timestamp", "value"))
_MOST_VALUES: Final = 100_000

Value: TypeAlias = "bool | int | float | str | tuple[Located, ...] | Mapping[str, Located] | None"


@dataclass(frozen=True, slots=True)
class Located:
    """A value and the line where it (or, in a mapping, its key) stands."""

    value: Value
    line: int = 0

    def plain(self) -> Any:
        """The value without lines: dict, list or scalar."""
        if isinstance(self.value, Mapping):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        return self.value

    def line_of(self, path: str) -> int:
        """The line of a field below this value, or of the nearest one above it that is there."""
        here = self
        for step in re.findall(r"[^.\[\]]+", path):
            below = here._below(step)
            if below is None:
                break
            here = below
        return here.line

    def _below(self, step: str) -> Located | None:
        if isinstance(self.value, Mapping):
            return self.value.get(step)
        if isinstance(self.value, tuple) and step.isdecimal() and int(step) < len(self.value):
            return self.value[int(step)]
        return None


def located(plain: Any, line: int = 0) -> Located:
    """A plain value as if it had been read from that line."""
    if isinstance(plain, Mapping):
        return Located({str(key): located(item, line) for key, item in plain.items()}, line)
    if isinstance(plain, list | tuple):
        return Located(tuple(located(item, line) for item in plain), line)
    if plain is None or isinstance(plain, bool | int | float | str):
        return Located(plain, line)
    raise TypeError(f"a {type(plain).__name__} has no place in a configuration")


def read_documents(text: str) -> tuple[list[Located], list[Problem]]:
    """The non-empty documents of a file, and what is wrong with it as a text; there is no document if it is no YAML."""
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # JSON may be indented by tabs, YAML may not
    reader = _Reader()
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=_Loader) if node is not None]
        documents = [reader.read(node, "", node.start_mark.line + 1) for node in nodes]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return [], [Problem(mark.line + 1 if mark else 0, "", f"is no valid YAML: {error.problem or error.context}")]
    except yaml.YAMLError as error:
        return [], [Problem(0, "", f"is no valid YAML: {' '.join(str(error).split())}")]
    except RecursionError:
        return [], [Problem(0, "", "is nested too deeply, or contains itself by an alias")]
    return [document for document in documents if document.value is not None], reader.problems


class _Loader(yaml.SafeLoader):
    """Without guesses that Kubernetes does not make."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _GUESSED_OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+0123456789."))


class _Reader:
    """From YAML nodes to located values."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._values = 0

    def read(self, node: yaml.Node, path: str, line: int) -> Located:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise RecursionError
        if isinstance(node, yaml.MappingNode):
            return Located(self._mapping(node, path), line)
        if isinstance(node, yaml.SequenceNode):
            items = [self.read(item, f"{path}[{at}]", item.start_mark.line + 1) for at, item in enumerate(node.value)]
            return Located(tuple(items), line)
        return Located(self._scalar(node, path), line)

    def _mapping(self, node: yaml.MappingNode, path: str) -> Mapping[str, Located]:
        found: dict[str, Located] = {}
        merged: dict[str, Located] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == f"{_TAG}merge":
                merged = {**dict(self._merged(value, path)), **merged}
                continue
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(Problem(line, path, "a key must be a text"))
                continue
            name = str(key.value)
            below = f"{path}.{name}" if path else name
            if name in found:
                first = found[name].line
                self.problems.append(Problem(line, below, f"is there twice (already in line {first})"))
                continue
            found[name] = self.read(value, below, line)
        return {**merged, **found}

    def _merged(self, node: yaml.Node, path: str) -> Iterator[tuple[str, Located]]:
        """What `<<` brings in; of several mappings the first one counts."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in reversed(sources):
            value = self.read(source, path, source.start_mark.line + 1).value
            if isinstance(value, Mapping):
                yield from value.items()
            else:
                self.problems.append(Problem(source.start_mark.line + 1, path, "<< needs a mapping"))

    def _scalar(self, node: yaml.Node, path: str) -> bool | int | float | str | None:
        kind = node.tag.removeprefix(_TAG)
        try:
            return _SCALARS[kind](node.value)
        except KeyError:
            problem = f"a {kind} has no place in a configuration"
        except ValueError:
            problem = f'"{node.value}" is no {kind}'
        self.problems.append(Problem(node.start_mark.line + 1, path, problem))
        return None


def _integer(text: str) -> int:
    body = text.replace("_", "").lstrip("+-")
    if body[:2] in ("0b", "0o", "0x"):
        number = int(body, 0)
    else:
        number = int(body, 8 if len(body) > 1 and body.startswith("0") else 10)
    return -number if text.startswith("-") else number


_SCALARS: Final[Mapping[str, Callable[[str], bool | int | float | str | None]]] = {
    "null": lambda text: None,
    "bool": lambda text: text.lower() in ("yes", "true", "on"),
    "int": _integer,
    "float": lambda text: float(text.replace("_", "")),
    "str": str,
}
