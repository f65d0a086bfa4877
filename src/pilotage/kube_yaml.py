"""YAML and JSON read as kubectl and kube-scheduler read them: every document becomes a JSON value.

YAML says more than JSON can carry, and PyYAML guesses otherwise than Kubernetes does. Here `2026-01-01` and `22:22` are
texts; `1e3`, `-.5`, `0x1F` and `017` are numbers, whole ones integers however they are written; `yes`, `on` and `y` are
true; the key of `8080: x` is "8080". A key that is given twice is a problem and not a lost line. What has no place in
JSON (sets, binary data, infinite numbers) is a problem, too. Aliases and merge keys work; a value that contains itself,
or that aliases make larger than any sensible file, is not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

import yaml
from yaml.composer import Composer

_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = "plain"
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = (16, 2, 8, 10)
_LARGEST: Final = 2**64
_LARGEST_WRITTEN_OUT: Final = 1e21
"""Numbers from here on have an exponent in JSON."""
_CONSTANTS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{text: True for word in ("y", "yes", "on", "true") for text in (word, word.capitalize(), word.upper())},
    **{text: False for word in ("n", "no", "off", "false") for text in (word, word.capitalize(), word.upper())},
    **{f"{sign}.{word}": math.inf for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_MOST_VALUES: Final = 5_000_000
"""More than any real file; aliases within aliases can describe far more than a file's size suggests."""
_NEEDS: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "float": (float, int),
    "int": (int,),
    "null": (type(None),),
}

Scalar = bool | int | float | str | None
_Made = TypeVar("_Made")


class YamlProblem(NamedTuple):
    """`line` and `column` count from 1, 0 if not known; `path` is the field, such as `spec.ports[0]`."""

    line: int
    column: int
    path: str
    message: str


class YamlError(ValueError):
    """What is wrong, on one line, without the name of the file."""


class Document(NamedTuple):
    """`number` counts from 1 in the file, empty documents included."""

    number: int
    value: Any


def documents(text: str | bytes) -> Iterator[Document]:
    """The non-empty documents as plain values; YamlError at the first that makes no sense."""
    reader: YamlReader[Any] = YamlReader(lambda value, line: value, _MOST_VALUES)
    for value in reader.documents(text):
        if reader.problems:
            break
        yield Document(reader.number, value)
    if reader.problems:
        raise YamlError(f"document {reader.number}: {_shown(reader.problems[0])}")


def _shown(problem: YamlProblem) -> str:
    column = f", column {problem.column}" if problem.column else ""
    where = f"line {problem.line}{column}: " if problem.line else ""
    # Keys that are quoted in it may contain anything.
    return " ".join(f"{where}{problem.path + ': ' if problem.path else ''}{problem.message}".split())


class YamlReader(Generic[_Made]):
    """Reads one text. `made` makes a value of a scalar, list or dict and its line (in a mapping that of its key)."""

    def __init__(self, made: Callable[[Any, int], _Made], most_values: int) -> None:
        self.problems: list[YamlProblem] = []
        """What is wrong with what was read so far."""
        self.number = 1
        """Of the document that is being read, empty ones included."""
        self.is_broken = False
        """The text is no YAML, or could not be read to its end."""
        self._made = made
        self._most_values = most_values
        self._values = 0

    def documents(self, text: str | bytes) -> Iterator[_Made]:
        """The non-empty documents. Ends at what is no YAML, with a problem more."""
        try:
            for node in yaml.compose_all(text, Loader=_Loader):
                if node is not None and not _is_null(node):
                    yield self._read(node, "", node.start_mark.line + 1)
                self.number += 1
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = ", ".join(part for part in (error.problem, error.context) if part)
            line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
            self._break_off(f"is no valid YAML: {what}", line, column)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            self._break_off(f"is no valid YAML: {' '.join(str(error).split())}")
        except RecursionError:
            self._break_off("is nested too deeply, or contains itself by an alias")
        except _TooLarge:
            self._break_off("aliases make it too large")

    def _break_off(self, message: str, line: int = 0, column: int = 0) -> None:
        self.is_broken = True
        self.problems.append(YamlProblem(line, column, "", message))

    def _read(self, node: yaml.Node, path: str, line: int) -> _Made:
        self._values += 1
        if self._values > self._most_values:
            raise _TooLarge
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.ScalarNode):
            return self._made(self._scalar(node, kind, path), line)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self._made(self._mapping(node, path), line)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            items = [self._read(item, f"{path}[{at}]", item.start_mark.line + 1) for at, item in enumerate(node.value)]
            return self._made(items, line)
        self._add(node, path, f"a {kind} has no place in JSON")
        return self._made(None, line)

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, _Made]:
        found: dict[str, _Made] = {}
        merged: dict[str, _Made] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == _PLAIN and key.value == "<<":
                merged = {**self._merged(value, path), **merged}
                continue
            name = self._key(key, path)
            if name is None:
                continue
            below = f"{path}.{name}" if path else name
            if name in lines:
                self._add(key, below, f"is there twice (already in line {lines[name]})")
                continue
            lines[name] = line
            found[name] = self._read(value, below, line)
        return {**merged, **found}

    def _merged(self, node: yaml.Node, path: str) -> dict[str, _Made]:
        """What `<<` brings in; of several mappings the first one counts."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[str, _Made] = {}
        for source in reversed(sources):
            if isinstance(source, yaml.MappingNode):
                self._values += 1
                if self._values > self._most_values:
                    raise _TooLarge
                found |= self._mapping(source, path)
            else:
                self._add(source, path, "<< needs a mapping")
        return found

    def _key(self, node: yaml.Node, path: str) -> str | None:
        key = _plain(node.value) if node.tag == _PLAIN else node.value
        if not isinstance(node, yaml.ScalarNode) or key is None:
            self._add(node, path, "a key must be a text")
            return None
        return str(key).lower() if isinstance(key, bool) else str(key)

    def _scalar(self, node: yaml.ScalarNode, kind: str, path: str) -> Scalar:
        if kind == "str":
            return str(node.value)
        value = _plain(node.value) if kind == _PLAIN or kind in _NEEDS else None
        if kind not in _NEEDS and kind != _PLAIN:
            self._add(node, path, f"a {kind} has no place in JSON")
        elif isinstance(value, float) and not math.isfinite(value):
            self._add(node, path, f"{node.value} has no place in JSON")
        elif kind in _NEEDS and not isinstance(value, _NEEDS[kind]):
            self._add(node, path, f'"{node.value}" is no {kind}')
        else:
            return value
        return None

    def _add(self, node: yaml.Node, path: str, message: str) -> None:
        self.problems.append(YamlProblem(node.start_mark.line + 1, node.start_mark.column + 1, path, message))


class _TooLarge(Exception):
    """More values than any real file has."""


class _Loader(Composer, yaml.CSafeLoader):
    """libyaml's parser, and nodes made of its events in Python: deep nesting would overflow the stack in C.

    What a scalar without quotes means is left to us.
    """

    def __init__(self, stream: str | bytes) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)


_Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


def _is_null(node: yaml.Node) -> bool:
    return node.tag == _PLAIN and node.value in _CONSTANTS and _CONSTANTS[node.value] is None


def _plain(text: str) -> Scalar:
    """What a scalar without quotes means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    found = _INTEGER.fullmatch(digits)
    if found is not None:
        sign, *parts = found.groups()
        written, base = next((part, base) for part, base in zip(parts, _BASES, strict=True) if part is not None)
        # Python reads no number of thousands of digits, and none of more than 64 can be small enough in any base.
        written = written.lstrip("0") or "0"
        if len(written) <= 64 and (number := int(written, base)) < _LARGEST:
            return -number if sign == "-" else number
    if _FLOAT.fullmatch(digits):
        real = float(digits)
        if math.isfinite(real):
            return int(real) if real.is_integer() and abs(real) < _LARGEST_WRITTEN_OUT else real
    return text
