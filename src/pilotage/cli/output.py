"""Where the commands write: the one way to the terminal, on which nothing from an object is obeyed.

Values are escaped where they become cells and lines (`columns`, `visible_lines`). What still comes here with control
characters in it is escaped too, apart from the line breaks between lines.
"""

from __future__ import annotations

from typing import Any

import click
import msgspec

from pilotage.escaping import visible_json, visible_text


def show(text: str, *, err: bool = False) -> None:
    click.echo(visible_text(text), err=err)


def show_json(value: Any, indent: int | None = None) -> None:
    """`indent`: how many blanks; None for one line."""
    document = msgspec.json.encode(value)
    click.echo(visible_json((document if indent is None else msgspec.json.format(document, indent=indent)).decode()))


def show_yaml(value: Any) -> None:
    import yaml

    # In ASCII: everything else is escaped by the format itself.
    click.echo(yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=False), nl=False)
