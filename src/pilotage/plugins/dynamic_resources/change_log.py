"""What changed since somebody looked last: a bounded list with positions."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

_KEPT = 10_000


class ChangeLog(Generic[T]):
    """Whoever remembers something about these things asks from time to time what to forget."""

    __slots__ = ("_entries", "_start")

    def __init__(self) -> None:
        self._entries: list[T] = []
        self._start = 0

    @property
    def end(self) -> int:
        """The position after the last change."""
        return self._start + len(self._entries)

    def append(self, changed: T) -> None:
        self._entries.append(changed)
        if len(self._entries) > 2 * _KEPT:
            del self._entries[:_KEPT]
            self._start += _KEPT

    def since(self, position: int) -> list[T] | None:
        """The changes from a position on; None if they are not known any more."""
        return None if position < self._start else self._entries[position - self._start :]
