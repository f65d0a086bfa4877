"""What two processes must know of each other without waiting: a page of memory that both have mapped.

    supervisor writes   when the lease was last renewed            the scheduler reads it before every write
    scheduler writes    when it was last alive, what it works on   the supervisor reads it to find a stuck scheduler

Times are those of CLOCK_MONOTONIC, which all processes of a machine share. Every number is an aligned double, written
and read in one piece, with one writer each: no lock that a stuck process could hold. The text of the current work
is longer than that, so a count before and after it shows a reader whether it was changed meanwhile.
"""

from __future__ import annotations

import mmap
from typing import Final

from msgspec import Struct

from pilotage.clock import Clock
from pilotage.cycle.observer import SchedulerObserver
from pilotage.model import Pod

_BYTES: Final = 4096
_RENEWED, _ALIVE, _SLOW_PATHS, _CHANGES, _LENGTH = range(5)
_NEVER: Final = -1.0
_TEXT: Final = 64
_LONGEST_TEXT: Final = _BYTES - _TEXT
_READS: Final = 10
"""How often a text that changes under the reader is read again before it is given up."""


class Work(Struct, frozen=True):
    """A pod that is being scheduled, and which plugin is at it if that is known."""

    namespace: str
    name: str
    uid: str
    plugin: str = ""


class SharedState:
    """Made before the fork; each process then writes its own part only."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BYTES)
        self._numbers = memoryview(self._memory)[:_TEXT].cast("d")
        self._numbers[_RENEWED] = self._numbers[_ALIVE] = _NEVER

    # --- the lease: written by the supervisor ------------------------------------------------------------------

    @property
    def renewed_at(self) -> float | None:
        """When the bid was made that makes us the leader; None if none does."""
        at = self._numbers[_RENEWED]
        return None if at == _NEVER else at

    def set_renewed_at(self, at: float | None) -> None:
        self._numbers[_RENEWED] = _NEVER if at is None else at

    @property
    def slow_paths(self) -> int:
        return int(self._numbers[_SLOW_PATHS])

    def set_slow_paths(self, count: int) -> None:
        self._numbers[_SLOW_PATHS] = float(count)

    # --- life: written by the scheduler ------------------------------------------------------------------------

    @property
    def alive_at(self) -> float | None:
        """The last sign of life; None before the first."""
        at = self._numbers[_ALIVE]
        return None if at == _NEVER else at

    def beat(self, now: float) -> None:
        self._numbers[_ALIVE] = now

    # --- work: written by the scheduler ------------------------------------------------------------------------

    def set_work(self, text: bytes) -> None:
        """`namespace NUL name NUL uid [NUL plugin]`; b"" for none."""
        text = text[:_LONGEST_TEXT]
        numbers = self._numbers
        numbers[_CHANGES] += 1.0
        self._memory[_TEXT : _TEXT + len(text)] = text
        numbers[_LENGTH] = len(text)
        numbers[_CHANGES] += 1.0

    @property
    def work(self) -> Work | None:
        """What is being scheduled; None if nothing is, or if it changes faster than it can be read."""
        for _ in range(_READS):
            before = self._numbers[_CHANGES]
            text = self._memory[_TEXT : _TEXT + int(self._numbers[_LENGTH])]
            if before % 2 == 0 and before == self._numbers[_CHANGES]:
                return _work(text)
        return None


class CurrentWork(SchedulerObserver):
    """Shows the other process which pod is being scheduled, and with that, that this one is alive."""

    def __init__(self, state: SharedState, clock: Clock) -> None:
        self._state = state
        self._monotonic = clock.monotonic

    def cycle_began(self, pod: Pod) -> None:
        self.set(f"{pod.namespace}\0{pod.name}\0{pod.uid}".encode())

    def idle(self) -> None:
        self.set(b"")

    def set(self, text: bytes) -> None:
        """See `SharedState.set_work`."""
        self._state.set_work(text)
        self._state.beat(self._monotonic())


def _work(text: bytes) -> Work | None:
    parts = text.decode("utf-8", "replace").split("\0")
    return Work(*parts[:4]) if len(parts) >= 3 else None
