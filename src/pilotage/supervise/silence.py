"""How long a process has given no sign of life, counted in steps of whoever watches.

A machine that was asleep, or a pair of processes that was stopped together, must not look like a stuck scheduler: time
counts only as far as the watcher itself was awake in it.
"""

from __future__ import annotations

from typing import Final

_LONGEST_STEP_SECONDS: Final = 1.0


class Silence:
    """Fed with the last sign of life, again and again."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._alive_at: float | None = None
        self._looked_at: float | None = None

    def look(self, alive_at: float | None, now: float) -> float:
        """How long nothing has been heard; 0 before the first sign of life."""
        is_news = alive_at != self._alive_at
        step = 0.0 if self._looked_at is None else min(now - self._looked_at, _LONGEST_STEP_SECONDS)
        self._alive_at, self._looked_at = alive_at, now
        self.seconds = 0.0 if is_news or alive_at is None else self.seconds + step
        return self.seconds
