"""Logging of the commands: to stderr, one line per event, warnings and worse unless `-v` asks for everything."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import MemoryHandler
from typing import Final

import click

from pilotage.cli.json_logs import JsonLines

log = logging.getLogger(__name__)

_FORMAT: Final = "%(levelname)s %(name)s: %(message)s"
_MOST_HELD_BACK: Final = 1000


def set_up_logging(level: int = logging.WARNING) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT) if level <= logging.DEBUG else _OneLine(_FORMAT))
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
    """What the command tells about itself, on stderr; in the form of the log lines if they are objects."""
    if logs_are_json():
        log.info("%s", text)
    else:
        click.echo(text, err=True)


def is_verbose() -> bool:
    return logging.getLogger().isEnabledFor(logging.DEBUG)


@contextmanager
def logs_held_back() -> Iterator[None]:
    """While something else draws on the terminal: what is logged is written at the end."""
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
        return text if error is None else f"{text}: {type(error).__name__}: {error} (-v shows more)"

    def _line(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        return self.formatMessage(record)
