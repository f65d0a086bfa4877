"""When to look again at what failed: later and later, and from the start after a success."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from pilotage.clock import Clock

ItemT = TypeVar("ItemT", bound=Hashable)

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0


class Retries(Generic[ItemT]):
    """`wake` is called whenever something fails: a task that sleeps until the next look may have to look sooner."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._failures: dict[ItemT, int] = {}
        self._due: dict[ItemT, float] = {}

    def failed(self, item: ItemT) -> float:
        """Returns the seconds until the next look."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        delay = min(_FIRST_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_SECONDS)
        self._due[item] = self._clock.monotonic() + delay
        self._wake()
        return delay

    def later(self, item: ItemT, seconds: float) -> None:
        """Look again after that time, although nothing failed."""
        self._due[item] = self._clock.monotonic() + seconds

    def succeeded(self, item: ItemT) -> None:
        self._failures.pop(item, None)
        self._due.pop(item, None)

    def take_due(self) -> list[ItemT]:
        if not self._due:
            return []
        now = self._clock.monotonic()
        due = [item for item, when in self._due.items() if when <= now]
        for item in due:
            del self._due[item]
        return due

    def next_due(self) -> float | None:
        """In seconds of the monotonic clock: the other one may be set."""
        return min(self._due.values(), default=None)
