"""Recorded cases: gzip'ed JSON lines, one problem with the real scheduler's answer per line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

Object = dict[str, Any]


class ConformanceCaseError(ValueError):
    """A file or line that holds no case; names both."""


@dataclass(frozen=True, slots=True)
class ConformanceCase:
    """One problem."""

    name: str
    kind: str
    objects: list[Object]
    pod: str
    expected: Object
    config: Object | None = None
    plugin: str = ""
    event: dict[str, str] = field(default_factory=dict)
    old_object: Object | None = None
    new_object: Object | None = None

    @property
    def theme(self) -> str:
        return self.name.rpartition("-")[0]


def load_cases(path: Path) -> Iterator[ConformanceCase]:
    """The cases of a file, plain or compressed."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                yield _case(path, number, line)
    except OSError as error:
        raise ConformanceCaseError(f"{path}: {error.strerror or error}") from error


def _case(path: Path, number: int, line: bytes) -> ConformanceCase:
    try:
        raw = msgspec.json.decode(line)
        return ConformanceCase(
            name=raw["name"],
            kind=raw["kind"],
            objects=raw["objects"],
            pod=raw["pod"],
            expected=raw["expected"],
            config=raw.get("config"),
            plugin=raw.get("plugin", ""),
            event=raw.get("event", {}),
            old_object=raw.get("oldObject"),
            new_object=raw.get("newObject"),
        )
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise ConformanceCaseError(f"{path}, line {number}: not a recorded case ({error})") from error
