"""YAML or JSON text as values that know their lines, so that a problem can be shown where it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pilotage.config.problems import Problem

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
    # Here, so that code that reads no configuration does not wait for PyYAML.
    from pilotage.kube_yaml import YamlReader

    reader = YamlReader(_located, _MOST_VALUES)
    documents = list(reader.documents(text))
    problems = [Problem(problem.line, problem.path, problem.message) for problem in reader.problems]
    return ([] if reader.is_broken else documents), problems


def _located(value: Any, line: int) -> Located:
    return Located(tuple(value) if isinstance(value, list) else value, line)
