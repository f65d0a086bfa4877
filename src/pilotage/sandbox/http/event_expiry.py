"""Events go after an hour, as in every cluster: they are news, and a busy sandbox makes many.

Each write of an event gives it another hour. Writes come in the order of time, so a queue of (time, event, revision) is
always sorted; an event whose revision has moved on has a later entry of its own.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from pilotage.clock import Clock
from pilotage.sandbox.storage.records import Change, Key, Record
from pilotage.sandbox.storage.store import Store

KEPT_SECONDS: Final = 3600.0

_EVENTS: Final = "events"


class EventExpiry:
    """The events of a store and when each has to go."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._due: deque[tuple[float, Key, int]] = deque()
        for record in store.list(_EVENTS):
            self._expect(record)
        store.subscribe(_EVENTS, self._on_change)

    def tick(self) -> None:
        """Remove what is due."""
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            _, key, revision = self._due[0]
            record = self._store.get(key)
            if record is not None and record.revision == revision:
                self._store.delete(key)
            self._due.popleft()

    def _on_change(self, change: Change) -> None:
        if change.type != "DELETED":
            self._expect(change.record)

    def _expect(self, record: Record) -> None:
        self._due.append((self._clock.monotonic() + KEPT_SECONDS, record.key, record.revision))
