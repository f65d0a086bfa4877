"""What a simulated container does by its command: a handful of programs whose outcome is known without running them.

    true   false   sleep SECONDS   exit CODE   echo TEXT   sh -c "sleep 5; echo done; exit 3"   an image called pause

`sh -c` takes a list of these, joined by `;`, `&&`, `||` or new lines. Everything else (pipes, variables, other
programs) is unknown: the container then does what annotations or settings say.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]

FOREVER: Final = float("inf")
_LONGEST_SCRIPT: Final = 4_096
_MOST_STEPS: Final = 100
_SHELLS: Final = frozenset({"sh", "bash", "ash"})
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SLEEP: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_SEPARATOR: Final = re.compile(r"(\s*(?:;|&&|\|\||\n)\s*)")
# Beyond these a shell would do more than the table knows.
_UNKNOWN: Final = re.compile(r"[$`|&<>(){}\[\]*?~\\#!]")


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How long a program runs, how it ends, and what it prints."""

    seconds: float
    exit_code: int = 0
    output: str = ""


def outcome_of(container: Object) -> ProgramOutcome | None:
    """What the container's command does; None if that is not known."""
    command = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not command:
        name = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
        return ProgramOutcome(FOREVER) if name == "pause" else None
    return _outcome(tuple(map(str, command)))


@lru_cache(maxsize=1024)
def _outcome(command: tuple[str, ...]) -> ProgramOutcome | None:
    name = command[0].rpartition("/")[2]
    if name in _SHELLS and len(command) >= 3 and command[1] == "-c":
        return _script(command[2])
    return _program(command)


def _program(command: tuple[str, ...]) -> ProgramOutcome | None:
    name, arguments = command[0].rpartition("/")[2], command[1:]
    match name:
        case "true" | ":":
            return ProgramOutcome(0.0)
        case "false":
            return ProgramOutcome(0.0, 1)
        case "pause":
            return ProgramOutcome(FOREVER)
        case "echo":
            return ProgramOutcome(0.0, 0, " ".join(arguments) + "\n")
        case "sleep" if arguments:
            parts = [_SLEEP.fullmatch(text) for text in arguments]
            if arguments == ("infinity",):
                return ProgramOutcome(FOREVER)
            known = [part for part in parts if part is not None]
            return ProgramOutcome(sum(float(p[1]) * _UNITS[p[2]] for p in known)) if len(known) == len(parts) else None
        case _:
            return None


def _script(text: str) -> ProgramOutcome | None:
    text = text.strip()
    pieces = _SEPARATOR.split(text)
    if len(text) > _LONGEST_SCRIPT or len(pieces) > 2 * _MOST_STEPS:
        return None
    seconds, code, output = 0.0, 0, ""
    for index in range(0, len(pieces), 2):
        before = pieces[index - 1].strip() if index else ";"
        if _UNKNOWN.search(pieces[index]):
            return None
        if not pieces[index] or (before == "&&" and code) or (before == "||" and not code):
            continue
        try:
            words = tuple(shlex.split(pieces[index]))
        except ValueError:
            return None
        if words[0] == "exit":
            return _exit(words[1:], seconds, code, output)
        step = _program(words[1:] if words[0] == "exec" and len(words) > 1 else words)
        if step is None:
            return None
        seconds, code, output = seconds + step.seconds, step.exit_code, output + step.output
        if seconds == FOREVER:
            break
    return ProgramOutcome(seconds, code, output)


def _exit(arguments: tuple[str, ...], seconds: float, code: int, output: str) -> ProgramOutcome | None:
    if not arguments:
        return ProgramOutcome(seconds, code, output)
    number = arguments[0]
    return ProgramOutcome(seconds, int(number) & 0xFF, output) if number.isdecimal() and len(number) < 6 else None
