"""The completed indexes of an Indexed Job as text: `0,2-5,7`, three or more in a row joined by a hyphen."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str) -> set[int]:
    """The indexes that the text names; parts that make no sense are left out."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
