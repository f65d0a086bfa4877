"""The CPU time that one scheduling cycle may take, asked by every loop whose length users decide.

A cycle shares its thread with those of all other pods, so none may take long. `CycleState.budget` is begun with the
cycle; loops over what a user wrote (terms, constraints, requests, devices) call `spend` on their way, and one that is
over the limit leaves by `BudgetExceeded`. The pod then backs off for a while, with an Event that names plugin and
cost; nothing was changed, and the next pod has a budget of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from pilotage.clock import thread_cpu_seconds

_STEPS_PER_LOOK: Final = 1024
"""Looking at the CPU's clock takes as long as a step does, so it is done once in so many."""


class BudgetExceeded(BaseException):
    """The cycle has taken more CPU time than it may.

    It ends the whole cycle, so that it is no `Exception`: a plugin that catches those must not go on.
    """

    def __init__(self, spent_seconds: float, limit_seconds: float) -> None:
        super().__init__(f"used {spent_seconds:.2f} s of CPU time, a scheduling cycle may use {limit_seconds:g} s")
        self.spent_seconds = spent_seconds
        self.limit_seconds = limit_seconds


class Budget:
    """What is left for the present cycle. Once it is exceeded every further look says so, until the next cycle."""

    __slots__ = ("_began", "_cpu_seconds", "_steps", "limit_seconds")

    def __init__(self, limit_seconds: float = math.inf, cpu_seconds: Callable[[], float] = thread_cpu_seconds) -> None:
        self.limit_seconds = limit_seconds
        self._cpu_seconds = cpu_seconds
        self.begin(limit_seconds)

    def begin(self, limit_seconds: float) -> None:
        """A new cycle, which may take so long."""
        self.limit_seconds = limit_seconds
        self._steps = 0
        self._began = self._cpu_seconds()

    @property
    def spent_seconds(self) -> float:
        """CPU time since the cycle began."""
        return self._cpu_seconds() - self._began

    def excuse(self, seconds: float) -> None:
        """Do not count CPU time that the cycle took but did not cause."""
        self._began += seconds

    def spend(self, steps: int = 1) -> None:
        """Count steps of about a microsecond each; BudgetExceeded if the time is over. Cheap enough for inner loops."""
        self._steps += steps
        if self._steps >= _STEPS_PER_LOOK:
            self.check()

    def check(self) -> None:
        """Look at the clock now; BudgetExceeded if the time is over."""
        self._steps = 0
        if self.limit_seconds == math.inf:
            return  # on some machines, a look at the clock of the CPU takes as long as what is measured
        spent = self.spent_seconds
        if spent > self.limit_seconds:
            self._steps = _STEPS_PER_LOOK
            raise BudgetExceeded(spent, self.limit_seconds)


UNLIMITED: Final = Budget()
"""For explanations, benchmarks and tests, which nothing else waits for."""
