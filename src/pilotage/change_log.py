"""What has changed since the last look.

Code that keeps something derived from many items (a column over all nodes) remembers a mark of the log and asks
later which items were touched since. The log is bounded: who was away for too long has to look at everything.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

_LIMIT = 65_536


class ChangeLog(Generic[T]):
    """Touched items in order; a mark is a place in it."""

    __slots__ = ("_items", "_limit", "_start")

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._items: list[T] = []
        self._start = 0

    @property
    def mark(self) -> int:
        """Everything up to here is known to a reader of now."""
        return self._start + len(self._items)

    def touch(self, item: T) -> None:
        self._items.append(item)
        if len(self._items) > self._limit:
            keep = self._limit // 2
            self._start += len(self._items) - keep
            del self._items[:-keep]

    def changed_since(self, mark: int) -> list[T] | None:
        """Items touched since `mark`, each once; None if the log does not reach back that far."""
        if mark < self._start:
            return None
        if mark == self._start + len(self._items):
            return []
        return list(dict.fromkeys(self._items[mark - self._start :]))
