"""Objects that exist on the server but cannot be understood.

To us such an object is not there, however we learn of it: a list leaves it out, a watch event for it is not passed
on. Only one case needs action: an object that was understood before and no longer is. The sink holds its old state,
which a fresh list (where the object is missing) takes away. Each object is told once while it stays undecodable.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.model.errors import DecodeError
from pilotage.model.kinds import WatchEvent
from pilotage.observe.skipped_objects import SkippedObjects


class Undecodable:
    """The keys of the objects of one kind that are skipped at present, and how often something was skipped."""

    def __init__(self, kind: str, skipped: SkippedObjects) -> None:
        self._kind = kind
        self._skipped = skipped
        self._keys: set[str] = set()
        self.skipped_total = 0

    def __len__(self) -> int:
        return len(self._keys)

    def listed(self, errors: Iterable[DecodeError]) -> None:
        """A complete list had exactly these."""
        before, self._keys = self._keys, set()
        for error in errors:
            self._skip(error)
        for key in before - self._keys:
            self._skipped.understood(self._kind, key)

    def sink_is_stale_after(self, event_type: str, error: DecodeError) -> bool:
        """Take note of a change that did not decode; True if the sink may hold an older state of the object."""
        was_known = error.key in self._keys
        self._skip(error)
        if event_type == "DELETED":
            self._keys.discard(error.key)
            self._skipped.understood(self._kind, error.key)
        return event_type != "ADDED" and not was_known

    def understood(self, changes: Iterable[WatchEvent]) -> None:
        for key in self._keys.intersection(change.object.key for change in changes) if self._keys else ():
            self._keys.discard(key)
            self._skipped.understood(self._kind, key)

    def _skip(self, error: DecodeError) -> None:
        self.skipped_total += 1
        self._keys.add(error.key)
        self._skipped.skip(self._kind, error.key, "decode", error)
