"""What a simulated container does by its command: a handful of programs whose outcome is known without running them.

    true  false  sleep SECONDS  echo TEXT  printf TEXT  env  printenv NAME  expr A + B  cat FILE  touch FILE  date
    sh -c SCRIPT    lists, if, while, for, variables, redirections: see `shell`
    an image called pause

Everything else is unknown: the container then does what annotations or settings say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from pilotage.sandbox.life.shell import FOREVER, Shell, Unknown, Words, calculated, environment_lines

__all__ = ["FOREVER", "ProgramOutcome", "command_of", "outcome_of", "run_command"]

Object: TypeAlias = dict[str, Any]
Environment: TypeAlias = Callable[[], Mapping[str, str]]

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SLEEP: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_REFERENCE: Final = re.compile(r"\$(\$|\(([^()\s]+)\))")
_ESCAPES: Final = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "%%": "%"}
TERMINATION_LOG: Final = "/dev/termination-log"


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How long a program runs, how it ends, and what it prints."""

    seconds: float
    exit_code: int = 0
    printed: tuple[tuple[float, str], ...] = ()
    """What it prints, and how many seconds after its start."""
    files: tuple[tuple[str, str], ...] = ()
    """What it has written to files."""

    @property
    def output(self) -> str:
        return self.output_until(FOREVER)

    def output_until(self, seconds: float) -> str:
        return "".join(text for at, text in self.printed if at <= seconds)

    def termination_message(self, container: Mapping[str, Any]) -> str:
        """What the container leaves behind for those who ask why it ended."""
        path = container.get("terminationMessagePath") or TERMINATION_LOG
        message = dict(self.files).get(path, "")
        if not message and self.exit_code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            message = "".join(self.output.splitlines(keepends=True)[-_MOST_LINES:])[-_LONGEST_FALLBACK:]
        return message[:_LONGEST_MESSAGE]


_MOST_LINES: Final = 80
_LONGEST_FALLBACK: Final = 2048
_LONGEST_MESSAGE: Final = 4096


def command_of(container: Mapping[str, Any], env: Environment) -> Words:
    """Its command with the references to variables, `$(NAME)`, replaced."""
    words = tuple(map(str, [*(container.get("command") or ()), *(container.get("args") or ())]))
    if not any("$" in word for word in words):
        return words
    known = env()

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else known.get(match[2], match[0])

    return tuple(_REFERENCE.sub(value, word) for word in words)


def outcome_of(container: Mapping[str, Any], env: Environment = dict) -> ProgramOutcome | None:
    """What the container's command does; None if that is not known. `env` is asked if it matters."""
    command = command_of(container, env)
    if not command:
        name = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
        return ProgramOutcome(FOREVER) if name == "pause" else None
    return run_command(command, env)


def run_command(command: Words, env: Environment = dict) -> ProgramOutcome | None:
    """What a command does; None if that is not known."""
    needs_env = any("$" in word or "env" in word for word in command)
    return _outcome(command, tuple(env().items()) if needs_env else ())


@lru_cache(maxsize=1024)
def _outcome(command: Words, env: tuple[tuple[str, str], ...]) -> ProgramOutcome | None:
    shell = Shell(dict(env), _program)
    try:
        script = _script_of(command)
        if script is None:
            shell.run(" ".join(map(_quoted, command)))
        else:
            shell.run(script)
    except (Unknown, RecursionError):
        return None
    return ProgramOutcome(shell.seconds, shell.code, tuple(shell.printed), tuple(shell.files.items()))


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _script_of(command: Sequence[str]) -> str | None:
    """The script of `sh -c`, if the command is one."""
    is_shell = command[0].rpartition("/")[2] in _SHELLS
    return command[2] if is_shell and len(command) >= 3 and command[1] in ("-c", "-ec", "-xc") else None


def _program(shell: Shell, words: Words) -> int:
    """Run a program inside of a script; its exit code."""
    name, arguments = words[0].rpartition("/")[2], words[1:]
    match name:
        case "true" | ":":
            return 0
        case "false":
            return 1
        case "pause":
            shell.sleep(FOREVER)
        case "echo":
            ends = "" if arguments[:1] == ("-n",) else "\n"
            shell.print(" ".join(arguments if ends else arguments[1:]) + ends)
        case "printf" if len(arguments) == 1:
            shell.print(re.sub(r"\\n|\\t|\\\\|%%", lambda match: _ESCAPES[match[0]], _without_formats(arguments[0])))
        case "env" if not arguments:
            shell.print(environment_lines(shell.env))
        case "printenv" if len(arguments) == 1:
            if arguments[0] not in shell.env:
                return 1
            shell.print(shell.env[arguments[0]] + "\n")
        case "expr":
            number = calculated(arguments)
            shell.print(f"{number}\n")
            return 0 if number else 1
        case "touch" if arguments:
            shell.files.update({path: shell.files.get(path, "") for path in arguments})
        case "cat" if arguments and all(path in shell.files for path in arguments):
            shell.print("".join(shell.files[path] for path in arguments))
        case "sleep" if arguments:
            shell.sleep(_seconds(arguments))
        case _ if _script_of(words) is not None:
            script = _script_of(words)
            assert script is not None
            return shell.inside(script)
        case _:
            raise Unknown
    return 0


def _without_formats(text: str) -> str:
    if "%" in text.replace("%%", ""):
        raise Unknown
    return text


def _seconds(arguments: Words) -> float:
    if arguments in (("infinity",), ("inf",)):
        return FOREVER
    parts = [_SLEEP.fullmatch(text) for text in arguments]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        raise Unknown
    return sum(float(part[1]) * _UNITS[part[2]] for part in known)
