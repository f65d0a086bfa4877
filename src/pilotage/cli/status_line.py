"""How far a long command is: one line on stderr that is rewritten, or in a log a line now and then."""

from __future__ import annotations

import sys
from typing import Final

from pilotage.clock import Clock
from pilotage.escaping import visible

_TERMINAL_SECONDS: Final = 0.2
_LOG_SECONDS: Final = 30.0


class StatusLine:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_terminal = sys.stderr.isatty()
        self._last = clock.monotonic() - (_LOG_SECONDS if self._is_terminal else 0.0)
        self._width = 0

    @property
    def is_due(self) -> bool:
        """Is it time to say something? Ask before putting a text together."""
        interval = _TERMINAL_SECONDS if self._is_terminal else _LOG_SECONDS
        return self._clock.monotonic() - self._last >= interval

    def show(self, text: str) -> None:
        self._last = self._clock.monotonic()
        shown = visible(text)
        if self._is_terminal:
            sys.stderr.write(f"\r{shown.ljust(self._width)}")
            self._width = len(shown)
        else:
            sys.stderr.write(f"{shown}\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Make room for other lines."""
        if self._is_terminal and self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0
