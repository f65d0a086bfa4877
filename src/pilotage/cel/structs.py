"""Objects that an expression builds: `Object{spec: Object.spec{replicas: 3}}` and `JSONPatch{op: "add", ...}`.

The CEL library builds messages of registered types only. Here a type is a path of fields of an object whose schema is
known to whoever takes the result, so what is built is a map: the text of the expression is rewritten before it is
compiled, field names become keys. Names that begin otherwise than the given roots are left to the compiler to reject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      (?P<text> [rRbB]{0,2} (?: \"{3}.*?\"{3} | '{3}.*?'{3} | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' ) )
    | (?P<type> [A-Za-z_]\w* (?:\s*\.\s*[A-Za-z_]\w*)* (?=\s*\{) )
    | (?P<name> [A-Za-z_]\w* | `[^`]*` )
    | (?P<space> \s+ | //[^\n]* )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENS, _CLOSES = frozenset("{[("), frozenset("}])")


def structs_as_maps(expression: str, roots: Set[str]) -> str:
    """The expression with `Root.path{field: value}` written as `{"field": value}`."""
    return "".join(_rewritten(expression, roots))


def _rewritten(expression: str, roots: Set[str]) -> Iterator[str]:
    # Of each bracket that is open: is it a struct, so that a name at the begin of an entry is a field?
    opened: list[bool] = []
    awaits_struct = awaits_field = False
    for token in _TOKEN.finditer(expression):
        text = token.group()
        match token.lastgroup:
            case "space":
                yield text
                continue
            case "type" if text.partition(".")[0].strip() in roots:
                awaits_struct = True
                continue
            case "name" if awaits_field:
                name = text.strip("`")
                yield f'"{name}"'
            case _:
                yield text
        if text in _OPENS:
            opened.append(awaits_struct)
            awaits_field, awaits_struct = awaits_struct, False
        elif text in _CLOSES and opened:
            opened.pop()
            awaits_field = False
        elif text != "?":
            awaits_field = text == "," and bool(opened) and opened[-1]
