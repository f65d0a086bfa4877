"""Plain columns, as kubectl prints them: headings in capitals, three blanks between."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.escaping import visible


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The lines of a table, without trailing blanks; cells are shown escaped."""
    table = [headings, *([visible(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(headings))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )
