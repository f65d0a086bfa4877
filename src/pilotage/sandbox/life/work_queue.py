"""What is to be looked at, and when: the dirty set and the timers of the sandbox's controllers in one structure.

Controllers are level-triggered: they look at the whole state of a key, so a key needs to be in the queue only once,
at the earliest time that anyone asked for. A later request for the same key changes nothing; an earlier one pulls it
forward (the handler of the key says afterwards when to look again).

Pure and deterministic: time is a parameter, and keys that are due at the same time come out in the order in which they
were put in. A pulled-forward or dropped entry stays in the heap as a corpse until it surfaces or corpses outnumber the
living.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_FEW = 64


class WorkQueue(Generic[T]):
    """Items by due time; every item is in it at most once."""

    def __init__(self) -> None:
        self._entry_of: dict[T, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, T]] = []
        self._order = 0

    def __len__(self) -> int:
        return len(self._entry_of)

    def __contains__(self, item: T) -> bool:
        return item in self._entry_of

    def add(self, item: T, due: float) -> None:
        """Have `item` popped at `due` or, if it already waits for an earlier time, then."""
        known = self._entry_of.get(item)
        if known is not None and known[0] <= due:
            return
        self._order += 1
        self._entry_of[item] = (due, self._order)
        heapq.heappush(self._heap, (due, self._order, item))
        if len(self._heap) > 2 * len(self._entry_of) + _FEW:
            self._bury_corpses()

    def discard(self, item: T) -> None:
        """Forget `item`, if it is there."""
        self._entry_of.pop(item, None)

    def pop(self, now: float) -> T | None:
        """The item that has been due for longest, taken out; None if nothing is due at `now`."""
        due = self.next_due()
        if due is None or due > now:
            return None
        item = heapq.heappop(self._heap)[2]
        del self._entry_of[item]
        return item

    def next_due(self) -> float | None:
        """When the next item is due (which may be in the past); None if the queue is empty."""
        heap = self._heap
        while heap and self._entry_of.get(heap[0][2]) != heap[0][:2]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def check(self) -> None:
        """The invariant: each item has exactly one living entry in the heap."""
        living = [item for due, order, item in self._heap if self._entry_of.get(item) == (due, order)]
        assert len(living) == len(set(living)) == len(self._entry_of), "an item waits exactly once"
        assert all(self._heap[(i - 1) // 2] <= self._heap[i] for i in range(1, len(self._heap))), "a heap"

    def _bury_corpses(self) -> None:
        self._heap = [(due, order, item) for item, (due, order) in self._entry_of.items()]
        heapq.heapify(self._heap)
