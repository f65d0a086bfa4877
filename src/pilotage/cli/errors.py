"""What a command says and which code it exits with when it cannot do what it was asked.

One line per problem on stderr, each naming the thing, the fact and the way out. The codes are the same for all commands
(see docs/exit-codes.md), so that a script can distinguish a wrong file from a cluster that is not there.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum

import click

from pilotage.cli.logs import is_verbose, logs_are_json
from pilotage.escaping import visible

log = logging.getLogger(__name__)


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    """It ran, and what was asked for failed or the answer is no."""
    BAD_INPUT = 2
    """Wrong usage, or a file that cannot be used as it is."""
    UNREACHABLE = 3
    """The network, a port or a directory does not let us work."""


class CommandError(Exception):
    """A problem that the user can do something about."""

    def __init__(self, code: ExitCode, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.code = code
        self.problems = problems


def bad_input(problems: str | Sequence[str]) -> CommandError:
    return CommandError(ExitCode.BAD_INPUT, *([problems] if isinstance(problems, str) else problems))


def unreachable(problem: str) -> CommandError:
    return CommandError(ExitCode.UNREACHABLE, problem)


def exit_code_of(work: Callable[[], int]) -> int:
    """What `work` returns; what it raises is reported and has a code, too."""
    try:
        return work()
    except CommandError as error:
        report(error.problems)
        return error.code
    except click.ClickException as error:
        report([usage_problem(error)])
        return error.exit_code
    except click.Abort:
        return ExitCode.FAILED
    except BrokenPipeError:
        # The reader of our output has seen enough; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:
        if is_verbose():
            raise
        problem = f"{type(error).__name__}: {one_line(str(error))}"
        report([f"this is a bug in pilotage: {problem}; run it again with -v for the details and report them"])
        return ExitCode.FAILED


def report(problems: Sequence[str]) -> None:
    for problem in problems:
        if logs_are_json():
            log.error("%s", one_line(problem))
        else:
            click.echo(f"error: {one_line(problem)}", err=True)


def usage_problem(error: click.ClickException) -> str:
    """Click's message with the way to the help of the command that was meant."""
    message = one_line(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    if not isinstance(error, click.UsageError) or context is None:
        return message
    return f"{message} (see {context.command_path} --help)"


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    return visible(" ".join(text.split()))
