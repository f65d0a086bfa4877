"""What a program of this folder found: figures against their limits, shown as a table, and the exit code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; without a limit it is for information."""

    name: str
    value: float
    limit: float | None = None
    unit: str = ""

    @property
    def is_kept(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def line(self) -> str:
        limit = "" if self.limit is None else f"limit {self.limit:g}{self.unit}"
        mark = "" if self.limit is None else ("ok" if self.is_kept else "EXCEEDED")
        return f"{self.name:<44} {self.value:>10.2f}{self.unit:<3} {limit:<14} {mark}".rstrip()


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of all does not exceed; NaN if there are none."""
    if not values:
        return math.nan
    ranked = sorted(values)
    return ranked[max(0, math.ceil(part * len(ranked)) - 1)]


def exit_code(figures: Sequence[Figure]) -> int:
    """Print the table; 1 if a limit was exceeded."""
    for figure in figures:
        print(figure.line(), flush=True)
    return 0 if all(figure.is_kept for figure in figures) else 1
