"""Keep one object per distinct content.

Pods come in a few hundred variants of spec, labels, owners and conditions. `Shared` maps the encoded content to the
one object that stands for it. It is bounded by two generations: when the young one is full it becomes the old one and
the previous old one is dropped, so what is still in use moves on and what is not disappears.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    def __init__(self, make: Callable[[bytes], T], limit: int = 16384) -> None:
        self._make = make
        self._limit = limit
        self._young: dict[bytes, T] = {}
        self._old: dict[bytes, T] = {}

    def get(self, content: bytes) -> T:
        """The object for `content`; made from it if there is none yet."""
        value = self._young.get(content)
        if value is None:
            value = self._old.get(content)
            if value is None:
                value = self._make(content)
            self._remember(content, value)
        return value

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _remember(self, content: bytes, value: T) -> None:
        if len(self._young) >= self._limit:
            self._old = self._young
            self._young = {}
        self._young[content] = value
