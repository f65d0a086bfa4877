"""Pods that are ready or wait for time: three heaps, each in its own order.

    active          as QueueSort says
    backoff         by the end of the backoff, then as QueueSort says
    error backoff   by the end of the backoff

A pod that leaves its heap, or moves in it, only gets another place number: its old place is void, and is dropped when
it comes to the top.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from pilotage.api.views import QueuedPod
from pilotage.queue.entry import Entry, SubQueue

SortKey = Callable[[QueuedPod], tuple[float, ...]]

HEAPS = (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)


class Heaps:
    """Entries whose home is one of `HEAPS`."""

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self._heaps: dict[SubQueue, list[tuple[tuple[float, ...], int, Entry]]] = {home: [] for home in HEAPS}
        self._places = 0

    def push(self, entry: Entry) -> None:
        """Into the heap that is its home, at the place that is right now; a place that it had before is void."""
        self._places += 1
        entry.place = self._places
        heapq.heappush(self._heaps[entry.home], (self._key(entry), entry.place, entry))

    @staticmethod
    def remove(entry: Entry) -> None:
        entry.place = 0

    def first(self, home: SubQueue) -> Entry | None:
        """The head of a heap."""
        heap = self._heaps[home]
        while heap:
            _, place, entry = heap[0]
            if entry.place == place and entry.home is home:
                return entry
            heapq.heappop(heap)
        return None

    def holds(self, entry: Entry) -> bool:
        """Is the entry in the heap that is its home? Looks at all of it; for tests."""
        return any(place == entry.place and e is entry for _, place, e in self._heaps.get(entry.home, []))

    def _key(self, entry: Entry) -> tuple[float, ...]:
        if entry.home is SubQueue.ERROR_BACKOFF:
            return (entry.backoff_until,)
        order = self._sort_key(QueuedPod(entry.pod, entry.timestamp, entry.attempts, entry.first_attempt_at))
        return (entry.backoff_until, *order) if entry.home is SubQueue.BACKOFF else order
