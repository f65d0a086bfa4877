"""Options that every command has, and what they do: `-v`, `--no-color`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FORMAT: Final = "%(levelname)s %(name)s: %(message)s"


def common_options(command: _Command) -> _Command:
    """Add the options; they take effect while the command line is read."""
    verbose = click.option(
        "-v", "--verbose", is_flag=True, expose_value=False, callback=_set_verbose, help="Log details to stderr."
    )
    no_color = click.option(
        "--no-color", is_flag=True, expose_value=False, callback=_set_no_color, help="No colours (as NO_COLOR=1)."
    )
    return verbose(no_color(command))


def set_up_logging(level: int = logging.WARNING) -> None:
    logging.basicConfig(level=level, format=_FORMAT, stream=sys.stderr, force=True)
    # asyncio's own debugging talk is about the loop, not about pods.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))


def is_verbose() -> bool:
    return logging.getLogger().isEnabledFor(logging.DEBUG)


def _set_verbose(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        set_up_logging(logging.DEBUG)


def _set_no_color(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        # The convention that every library of ours honours.
        os.environ["NO_COLOR"] = "1"
