"""What is told only if it is still so after a moment.

Most pods that are held back until their claim is made are held back for an instant. To write that into their status
would cost the API server as much as binding them. So it is noted, and told at the second tick after that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Belated(Generic[T]):
    """News by key; each is told once, unless it is taken back before."""

    def __init__(self, tell: Callable[[T], None]) -> None:
        self._tell = tell
        self._fresh: dict[str, T] = {}
        self._due: dict[str, T] = {}

    def note(self, key: str, news: T) -> None:
        """Tell this, if nobody takes it back in time; newer news about the same take its place."""
        if key in self._due:
            self._due[key] = news
        else:
            self._fresh[key] = news

    def take_back(self, key: str) -> None:
        """It is over."""
        self._fresh.pop(key, None)
        self._due.pop(key, None)

    def tick(self) -> None:
        """A moment has passed."""
        told, self._due, self._fresh = self._due, self._fresh, {}
        for news in told.values():
            self._tell(news)
