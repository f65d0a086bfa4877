"""Keep one object per distinct content.

Pods come in a few hundred variants of spec, labels, owners and conditions. `Shared` maps the encoded content to the
one object that stands for it. It is bounded by two generations: when the young one is full it becomes the old one and
the previous old one is dropped, so what is still in use moves on and what is not disappears. Full means too many
entries or too many bytes. Content that is large by itself is not kept at all, only found again while somebody uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

LARGE: Final = 16 * 1024
_MOST_BYTES: Final = 8 * 2**20


class Shared(Generic[T]):
    def __init__(self, make: Callable[[bytes], T], limit: int = 16384) -> None:
        self._make = make
        self._limit = limit
        self._young: dict[bytes, T] = {}
        self._old: dict[bytes, T] = {}
        self._young_bytes = 0
        self._large: InUse[T] = InUse()

    def get(self, content: bytes) -> T:
        """The object for `content`; made from it if there is none yet."""
        value = self._young.get(content)
        if value is None:
            if len(content) > LARGE:
                return self._large.get(content, self._make)
            value = self._old.get(content)
            if value is None:
                value = self._make(content)
            self._remember(content, value)
        return value

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _remember(self, content: bytes, value: T) -> None:
        if len(self._young) >= self._limit or self._young_bytes >= _MOST_BYTES:
            self._old = self._young
            self._young = {}
            self._young_bytes = 0
        self._young[content] = value
        self._young_bytes += len(content)


class InUse(Generic[T]):
    """Objects by their content, as long as somebody uses them; those that cannot be watched are made anew."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[bytes, T] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, content: bytes, make: Callable[[bytes], T]) -> T:
        digest = blake2b(content, digest_size=16).digest()
        value = self._known.get(digest)
        if value is None:
            value = make(content)
            if type(value).__weakrefoffset__:
                self._known[digest] = value
        return value
