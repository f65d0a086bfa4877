"""How long a search may take: what is left of the cycle's budget, and the plugin's own timeout for a node."""

from __future__ import annotations

import math
from typing import Final

from pilotage.api import Budget
from pilotage.api.budget import UNLIMITED
from pilotage.clock import Clock, SystemClock
from pilotage.plugins.dynamic_resources.errors import AllocationError

_STEPS_PER_LOOK_AT_THE_CLOCK = 256


class TimeLimit:
    """For one search on one node."""

    __slots__ = ("_budget", "_clock", "_end", "_node_name", "_steps")

    def __init__(self, node_name: str, budget: Budget, clock: Clock, timeout_seconds: float | None = None) -> None:
        self._node_name = node_name
        self._budget = budget
        self._clock = clock
        self._end = clock.monotonic() + timeout_seconds if timeout_seconds else math.inf
        self._steps = 0

    def spend(self) -> None:
        """A device was tried."""
        self._budget.spend()
        self._steps += 1
        if self._steps >= _STEPS_PER_LOOK_AT_THE_CLOCK:
            self._steps = 0
            if self._clock.monotonic() > self._end:
                raise AllocationError(f"node {self._node_name}: timed out trying to allocate devices")

    def check(self) -> None:
        """Something is to be done that may take long by itself."""
        self._budget.check()


FOR_EVER: Final = TimeLimit("", UNLIMITED, SystemClock())
