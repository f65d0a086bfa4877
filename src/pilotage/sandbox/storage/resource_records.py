"""The records of one resource, found by key and listed in order.

Writes come one by one and far more often than lists, and a list must not sort 100,000 keys each time. So writes only
note which keys came or went, and the next list puts the sorted keys right: few notes are placed by binary search, many
are merged by one sort, which is close to linear because the old keys are already in order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

from pilotage.sandbox.storage.records import Key, Record

# Placing a key by binary search moves, on average, half of the list's pointers; beyond this many keys one merge is
# cheaper for lists of any length.
_FEW: Final = 64


class ResourceRecords:
    """All live records of one resource."""

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}
        self._order: list[Key] = []
        self._moved: dict[Key, None] = {}

    def put(self, record: Record) -> None:
        key = record.key
        if key not in self.records:
            self._moved[key] = None
        self.records[key] = record

    def remove(self, key: Key) -> None:
        del self.records[key]
        self._moved[key] = None

    def sorted(self) -> list[Record]:
        """Every record, by namespace and name."""
        self._settle()
        return list(map(self.records.__getitem__, self._order))

    def sorted_in(self, resource: str, namespace: str) -> list[Record]:
        """The records of one namespace, by name, at the cost of those alone."""
        self._settle()
        start = bisect_left(self._order, (resource, namespace, ""))
        # No namespace sorts between one and the same followed by a NUL, the smallest character.
        end = bisect_left(self._order, (resource, namespace + "\0", ""), start)
        return list(map(self.records.__getitem__, self._order[start:end]))

    def check(self) -> None:
        """The order holds each key once; a key out of place is noted as moved."""
        self._settle()
        assert self._order == sorted(self.records), "the order is that of the keys"
        assert all(key == record.key for key, record in self.records.items()), "a record is found under its own key"

    def _settle(self) -> None:
        if not self._moved:
            return
        if len(self._moved) <= _FEW:
            for key in self._moved:
                self._settle_one(key)
        else:
            order = [key for key in self._order if key not in self._moved]
            order.extend(key for key in self._moved if key in self.records)
            order.sort()
            self._order = order
        self._moved.clear()

    def _settle_one(self, key: Key) -> None:
        at = bisect_left(self._order, key)
        is_listed = at < len(self._order) and self._order[at] == key
        if key not in self.records:
            if is_listed:
                del self._order[at]
        elif not is_listed:
            insort(self._order, key)
