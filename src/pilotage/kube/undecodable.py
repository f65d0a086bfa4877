"""Objects that exist on the server but cannot be understood.

To us such an object is not there, however we learn of it: a list leaves it out, a watch event for it is not passed
on. Only one case needs action: an object that was understood before and no longer is. The sink holds its old state,
which a fresh list (where the object is missing) takes away. Each object is logged once while it stays undecodable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pilotage.model.errors import DecodeError
from pilotage.model.kinds import WatchEvent

_log = logging.getLogger(__name__)


class Undecodable:
    """The keys of the objects of one kind that are skipped at present, and how often something was skipped."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self.skipped_total = 0

    def __len__(self) -> int:
        return len(self._keys)

    def listed(self, errors: Iterable[DecodeError]) -> None:
        """A complete list had exactly these."""
        before, self._keys = self._keys, set()
        for error in errors:
            self._skip(error, is_news=error.key not in before)

    def sink_is_stale_after(self, event_type: str, error: DecodeError) -> bool:
        """Take note of a change that did not decode; True if the sink may hold an older state of the object."""
        was_known = error.key in self._keys
        self._skip(error, is_news=not was_known)
        if event_type == "DELETED":
            self._keys.discard(error.key)
        return event_type != "ADDED" and not was_known

    def understood(self, changes: Iterable[WatchEvent]) -> None:
        if self._keys:
            self._keys.difference_update(change.object.key for change in changes)

    def _skip(self, error: DecodeError, *, is_news: bool) -> None:
        self.skipped_total += 1
        self._keys.add(error.key)
        if is_news:
            _log.warning("skipped, does not decode: %s", error)
