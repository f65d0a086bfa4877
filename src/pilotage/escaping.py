"""Text from objects, as it may be shown to people: what a terminal would obey, or would not show, is written out.

Users who may write an object may put escape sequences, line breaks or marks that turn the direction of writing there.
A terminal would obey them and a log would get lines that no one wrote. So text is escaped where it leaves for people
(terminal, log, page, Event, condition), by Python's own idea of what is printable: `\\x1b`, `\\n`, `\\u202e`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SUSPECT: Final = re.compile("[^ -~]")
_SUSPECT_IN_TEXTS: Final = re.compile("[^ -~\n\t]")
_SUSPECT_IN_JSON: Final = re.compile("[^ -~\n]")


def visible(text: str) -> str:
    """One line: a value, a cell, a message."""
    return text if text.isprintable() else _SUSPECT.sub(_escaped, text)


def visible_lines(lines: Iterable[str]) -> str:
    """A text made of lines, none of which may become two."""
    return "\n".join(map(visible, lines))


def visible_text(text: str) -> str:
    """A text that was put together already: its line breaks and tabs are kept, for they may be ours."""
    return text if text.isprintable() else _SUSPECT_IN_TEXTS.sub(_escaped, text)


def visible_json(document: str) -> str:
    """The same JSON document in signs that can be shown; a program reads the same values from it."""
    return document if document.isprintable() else _SUSPECT_IN_JSON.sub(_escaped_in_json, document)


def _escaped(found: re.Match[str]) -> str:
    sign = found[0]
    return sign if sign.isprintable() else repr(sign)[1:-1]


def _escaped_in_json(found: re.Match[str]) -> str:
    sign = found[0]
    if sign.isprintable():
        return sign
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
