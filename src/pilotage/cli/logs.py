"""Logging of the commands: to stderr, one line per event, warnings and worse unless `-v` asks for more.

A line is a sentence with `name=value` pairs at its end, as in `pod bound: pod=default/a node=n1`. A value that is not
one word is quoted, so that what an object says cannot pass for a pair.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from pilotage.cli.json_logs import JsonLines, taken_apart
from pilotage.escaping import visible, visible_text

log = logging.getLogger(__name__)

_MOST_HELD_BACK: Final = 1000


def set_up_logging(level: int = logging.WARNING) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithTraceback() if level <= logging.DEBUG else _OneLine())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # asyncio's own debugging talk is about the loop, not about pods.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))


def log_as_json() -> None:
    """From now on every line is a JSON object, what the command says about itself included."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLines())


def logs_are_json() -> bool:
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)


def say(text: str) -> None:
    """What the command says about itself, on stderr; in the form of the log lines if they are objects."""
    if logs_are_json():
        log.info("%s", text)
    else:
        click.echo(visible_text(text), err=True)


def is_verbose() -> bool:
    return logging.getLogger().isEnabledFor(logging.DEBUG)


@contextmanager
def logs_held_back() -> Iterator[None]:
    """While something else draws on the terminal: what is logged is written at the end."""
    # Brings sockets and pickling along, for other handlers than this one.
    from logging.handlers import MemoryHandler

    root = logging.getLogger()
    before = root.handlers[:]
    held = [MemoryHandler(_MOST_HELD_BACK, flushLevel=logging.CRITICAL + 1, target=handler) for handler in before]
    root.handlers[:] = held
    try:
        yield
    finally:
        root.handlers[:] = before
        for handler in held:
            handler.close()


class _OneLine(logging.Formatter):
    """A traceback is for those who asked for details; others get its last line."""

    def format(self, record: logging.LogRecord) -> str:
        text = " ".join(self._line(record).split())
        error = record.exc_info[1] if record.exc_info else None
        return visible(text if error is None else f"{text}: {type(error).__name__}: {error} (-v shows more)")

    def _line(self, record: logging.LogRecord) -> str:
        return f"{_level_name(record.levelno)} {record.name}: {_with_pairs(record)}"


class _WithTraceback(logging.Formatter):
    """A line for each record; what follows of a traceback is indented, so that it cannot pass for a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(f"{_level_name(record.levelno)} {record.name}: {_with_pairs(record)}")

    def formatException(self, ei: Any) -> str:
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def _level_name(level: int) -> str:
    """INFO for whatever `-v` adds below DEBUG: the number of the level says nothing to people."""
    if level < logging.INFO:
        return "DEBUG" if level <= logging.DEBUG else "INFO"
    return logging.getLevelName(level)


def _with_pairs(record: logging.LogRecord) -> str:
    sentence, pairs = taken_apart(record)
    if not pairs:
        return sentence
    shown = " ".join(f"{name}={_quoted(value)}" for name, value in pairs.items())
    return f"{sentence}: {shown}" if sentence else shown


def _quoted(value: str) -> str:
    is_word = value and '"' not in value and not any(map(str.isspace, value))
    return value if is_word else json.dumps(value, ensure_ascii=False)


def _indented(text: str) -> str:
    return "\n".join(f"  {visible(line)}" for line in text.split("\n"))
