"""Calls that a property test holds wherever a model server pauses: before and after it takes them in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from pilotage.api.calls import OnOutcome, Outcome, Seen
from pilotage.calls.call_queue import CallQueue, CallSlot
from pilotage.kube.errors import ApiStatusError


class Pause:
    """Where a call in flight can be held."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Flights:
    """Calls that a queue has handed out, each held where the model server pauses."""

    def __init__(self, queue: CallQueue, server: Any, on_rejection: Callable[[CallSlot, ApiStatusError], None]) -> None:
        self._queue = queue
        self._server = server
        self._on_rejection = on_rejection
        self._flying: dict[str, tuple[CallSlot, Coroutine[Any, Any, str | None]]] = {}

    def __len__(self) -> int:
        return len(self._flying)

    def __contains__(self, key: str) -> bool:
        return key in self._flying

    def keys(self) -> set[str]:
        return set(self._flying)

    def begin(self, slot: CallSlot) -> None:
        """As a dispatcher would: look first if nobody knows what became of an earlier try."""
        assert slot.key not in self._flying, "one call in flight for each object"
        try:
            if self._queue.is_in_doubt(slot):
                seen = _seen_now(slot.call.look(self._server))
                self._queue.looked(slot, seen)
                if seen.has_happened:
                    self._queue.done(slot, None if seen.object is None else seen.object.resource_version)
                    return
        except ApiStatusError as error:
            self._queue.failed(slot, error)
            return
        self._flying[slot.key] = slot, slot.call.perform(self._server)
        self.go_on(slot.key)

    def go_on(self, key: str) -> None:
        """To the next pause, or to the end."""
        if key not in self._flying:
            return
        slot, coroutine = self._flying[key]
        try:
            coroutine.send(None)
        except StopIteration as finished:
            del self._flying[key]
            self._queue.done(slot, finished.value)
        except ApiStatusError as error:
            del self._flying[key]
            self._on_rejection(slot, error)

    def cut_off(self, key: str) -> CallSlot:
        """The connection is lost, before or after the server has taken in the call: nobody knows which."""
        slot, coroutine = self._flying.pop(key)
        coroutine.close()
        return slot


def _seen_now(coroutine: Coroutine[Any, Any, Seen]) -> Seen:
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
