"""How far a benchmark is, on standard error, while it runs."""

from __future__ import annotations

import sys
from typing import TextIO

from pilotage.clock import Clock

_TERMINAL_INTERVAL_SECONDS = 0.2
_LOG_INTERVAL_SECONDS = 5.0


class ProgressLine:
    """One line that is rewritten on a terminal, and now and then a line in a log."""

    def __init__(self, clock: Clock, stream: TextIO | None = None) -> None:
        """`stream`: by default standard error as it is now, which need not be that of the import."""
        self._clock = clock
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._last = float("-inf")

    def show(self, step: str, done: int, total: int) -> None:
        """Say how far a step is, if it is not too soon after the last time."""
        now = self._clock.monotonic()
        interval = _TERMINAL_INTERVAL_SECONDS if self._is_terminal else _LOG_INTERVAL_SECONDS
        if now - self._last < interval:
            return
        self._last = now
        self._write(f"{step}: {done:,} of {total:,}")

    def finish(self, step: str) -> None:
        """Say that a step is done."""
        self._write(step)
        if self._is_terminal:
            self._stream.write("\n")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\033[2K{text}" if self._is_terminal else f"{text}\n")
        self._stream.flush()
