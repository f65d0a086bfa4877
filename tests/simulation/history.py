"""What happened, line by line, and what must not have happened.

The same seed writes the same lines, byte for byte. The first violation ends a run; it carries the last lines with it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pilotage.clock import Clock

_TAIL_LINES = 60


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that was broken: which one, when, and by what."""

    invariant: str
    at: float
    details: str


class History:
    """The lines of one run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: list[str] = []
        self.violations: list[Violation] = []

    def note(self, who: str, what: str) -> None:
        self._lines.append(f"{self._clock.monotonic():9.3f} {who:<8} {what}")

    def violated(self, invariant: str, details: str) -> None:
        self.violations.append(Violation(invariant, self._clock.monotonic(), details))
        self.note("VIOLATED", f"{invariant}: {details}")

    def text(self) -> str:
        return "\n".join(self._lines)

    def tail(self, count: int = _TAIL_LINES) -> str:
        return "\n".join(self._lines[-count:])

    def digest(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    seed: int
    violations: tuple[Violation, ...]
    history: History
    figures: dict[str, int]
    """How much happened: writes, bindings, crashes and so on."""

    def report(self) -> str:
        """For people: what was violated, what led to it, and how to see all of it."""
        found = "\n".join(f"  t={one.at:.3f} {one.invariant}: {one.details}" for one in self.violations)
        replay = f"python -m tests.simulation --seed {self.seed} --log"
        return f"seed {self.seed}:\n{found}\nthe last lines:\n{self.history.tail()}\nreplay: {replay}"
