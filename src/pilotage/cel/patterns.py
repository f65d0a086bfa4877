"""Regular expressions of selectors: RE2, as in Kubernetes, so that matching takes linear time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

COST_OF_INSTRUCTION: Final = 40
"""Making a program takes about two microseconds for each of its instructions; a unit of cost is 50 ns."""
_MOST_MEMORY: Final = 1 << 19
_KEPT: Final = 256


class BadPattern(ValueError):
    """A regular expression that RE2 rejects."""


@lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise BadPattern(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None


def program_size(pattern: str) -> int:
    """How many instructions the pattern becomes; BadPattern if it is none, or too large."""
    return int(_compiled(pattern).programsize)


def is_found(text: str, pattern: str) -> bool:
    """BadPattern if the pattern is none."""
    return _compiled(pattern).search(text) is not None


def find(text: str, pattern: str) -> str:
    """The first match; "" if there is none."""
    found = _compiled(pattern).search(text)
    return str(found[0]) if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches that do not overlap, or the first of them; an empty one right after another does not count."""
    matches: list[str] = []
    end = -1
    for found in _compiled(pattern).finditer(text):
        if 0 <= limit <= len(matches):
            break
        start, last = found.span()
        if start != last or start != end:
            matches.append(str(found[0]))
        end = last
    return matches
