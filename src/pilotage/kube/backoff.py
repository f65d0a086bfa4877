"""How long to wait before trying again: doubling from 0.1 s to 30 s, spread by chance.

The spread keeps many clients (and the twenty reflectors of one client) from coming back in the same instant after
a server restart.
"""

from __future__ import annotations

import random

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 30.0


class Backoff:
    """Delays of consecutive failures; `reset` after a success."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._base = FIRST_SECONDS

    def next_delay(self) -> float:
        """Between half and one and a half of the current step, never above the longest."""
        delay = self._base * (0.5 + self._rng.random())
        self._base = min(self._base * 2, LONGEST_SECONDS)
        return min(delay, LONGEST_SECONDS)

    def reset(self) -> None:
        self._base = FIRST_SECONDS
