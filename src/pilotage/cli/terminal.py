"""Tables and colours on a terminal, without obeying what stands in the cells."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from pilotage.escaping import visible_text


class PlainConsole(Console):
    """Shows text as it is: brackets are no markup, colons no emoji, and no control character passes."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible_text(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible_text(segment.text))
