"""Which events are repetitions: the same thing, about the same version of the same object, seen again.

    first time            an Event is created
    second time           it becomes a series: count 2, written at once
    third time and on     only counted; written every half hour, and when the series is over
    nothing for 6 minutes the series is over; the next time an Event is created again

A pure state machine; it is looked through every six minutes, so that a series ends after six to twelve.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from msgspec import Struct

FINISH_SECONDS: Final = 6 * 60.0
REFRESH_SECONDS: Final = 30 * 60.0

T = TypeVar("T")


class RecentEvent(Struct, Generic[T]):
    """An event that was written not long ago."""

    written: T
    last_seen: float
    count: int = 1
    count_written: int = 1


class RecentEvents(Generic[T]):
    """Events by what makes them the same."""

    def __init__(self, now: float) -> None:
        self._events: dict[Hashable, RecentEvent[T]] = {}
        self._next_finish = now + FINISH_SECONDS
        self._next_refresh = now + REFRESH_SECONDS

    def __len__(self) -> int:
        return len(self._events)

    def add(self, key: Hashable, written: T, now: float) -> None:
        self._events[key] = RecentEvent(written, now)

    def again(self, key: Hashable, now: float) -> RecentEvent[T] | None:
        """It has happened again; the event that it repeats, None if it repeats none."""
        recent = self._events.get(key)
        if recent is not None:
            recent.count += 1
            recent.last_seen = now
        return recent

    def to_write(self, now: float) -> Iterator[RecentEvent[T]]:
        """Series whose count is to be written now. Call it every now and then."""
        if now >= self._next_refresh:
            self._next_refresh = now + REFRESH_SECONDS
            yield from self._unwritten(list(self._events.values()))
        if now >= self._next_finish:
            self._next_finish = now + FINISH_SECONDS
            over = [key for key, recent in self._events.items() if recent.last_seen < now - FINISH_SECONDS]
            yield from self._unwritten([self._events.pop(key) for key in over])

    @staticmethod
    def _unwritten(events: list[RecentEvent[T]]) -> Iterator[RecentEvent[T]]:
        for recent in events:
            if recent.count != recent.count_written:
                recent.count_written = recent.count
                yield recent
