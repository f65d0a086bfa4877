"""What is wrong with a configuration file: every problem with its line and path, all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """`line` counts from 1, 0 if there is none; `path` is the field, such as `profiles[0].schedulerName`."""

    line: int
    path: str
    message: str

    def text(self, file: str) -> str:
        """`file:line: path: message` on one line, without the parts that are not known."""
        where = f"{file}:{self.line}" if file and self.line else file
        # Keys and values that are quoted in it may contain anything.
        return ": ".join(" ".join(part.split()) for part in (where, self.path, self.message) if part)


class ConfigError(ValueError):
    """A configuration that cannot be used; its text has one line per problem."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = tuple(sorted(set(problems)))
        self.lines = tuple(problem.text(file) for problem in self.problems)
        super().__init__("\n".join(self.lines))
