"""The completed indexes of an Indexed Job as text: `0,2-5,7`, three or more in a row joined by a hyphen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_INDEXES: Final = 1_000_000
"""An Indexed Job cannot have more; a status, which any client may write, can name more."""
_MOST_DIGITS: Final = 10


def parse_indexes(text: str) -> set[int]:
    """The indexes that the text names; parts that make no sense are left out."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if _is_index(first) and _is_index(last or first):
            indexes.update(range(int(first), min(int(last or first), MOST_INDEXES - 1) + 1))
    return indexes


def _is_index(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def format_indexes(indexes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
