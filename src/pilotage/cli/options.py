"""Options that every command has, and what they do: `-v`, `--no-color`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pilotage.cli.logs import set_up_logging

_Command = TypeVar("_Command", bound=Callable[..., Any])


def common_options(command: _Command) -> _Command:
    """Add the options; they take effect while the command line is read."""
    verbose = click.option(
        "-v", "--verbose", is_flag=True, expose_value=False, callback=_set_verbose, help="Log details to stderr."
    )
    return verbose(no_color_option(command))


def no_color_option(command: _Command) -> _Command:
    option = click.option(
        "--no-color", is_flag=True, expose_value=False, callback=_set_no_color, help="No colours (as NO_COLOR=1)."
    )
    return option(command)


def _set_verbose(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        set_up_logging(logging.DEBUG)


def _set_no_color(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        # The convention that every library of ours honours.
        os.environ["NO_COLOR"] = "1"
