"""Near misses: what somebody who wrote this name probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """` (did you mean "X"?)` for a near miss, else nothing. Upper and lower case do not count."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), list(by_lower), n=1)
    return f' (did you mean "{by_lower[close[0]]}"?)' if close else ""
