"""Calls that a property test holds wherever a model server pauses: before and after it takes them in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from pilotage.api.calls import OnOutcome, Outcome, Seen


class Pause:
    """Where a call in flight can be held."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def seen_now(coroutine: Coroutine[Any, Any, Seen]) -> Seen:
    """The result of a look that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        seen: Seen = finished.value
        return seen
    raise AssertionError("it waits")


class Listeners:
    """Makes listeners whose complaints are heard: the queue itself only logs what goes wrong in a listener."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._count = 0
        self._complaints: list[AssertionError] = []

    def add(self, check: Callable[[Outcome], None]) -> OnOutcome:
        self._count += 1
        number = self._count
        self._open.add(number)

        def tell(outcome: Outcome) -> None:
            try:
                assert number in self._open, "nobody is told twice"
                self._open.remove(number)
                check(outcome)
            except AssertionError as complaint:
                self._complaints.append(complaint)

        return tell

    @property
    def all_told(self) -> bool:
        return not self._open

    def check(self) -> None:
        """Raise what a listener found wrong."""
        for complaint in self._complaints:
            raise complaint
