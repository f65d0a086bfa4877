"""Sharing of equal content is bounded and keeps what is in use."""

from __future__ import annotations

from weakref import ref

from pilotage.model.frozen_map import FrozenMap
from pilotage.model.interning import Shared


def test_equal_content_is_made_once() -> None:
    made: list[bytes] = []

    def make(content: bytes) -> list[bytes]:
        made.append(content)
        return [content]

    shared = Shared(make)
    assert shared.get(b"a") is shared.get(bytes([97]))
    assert shared.get(b"b") == [b"b"]
    assert made == [b"a", b"b"]


def test_size_is_bounded_and_what_is_used_again_survives() -> None:
    shared: Shared[list[bytes]] = Shared(lambda content: [content], limit=10)
    used = shared.get(b"used")
    for number in range(1000):
        shared.get(str(number).encode())
        assert shared.get(b"used") is used
        assert len(shared) <= 20


def test_what_is_not_used_is_forgotten() -> None:
    shared: Shared[list[bytes]] = Shared(lambda content: [content], limit=10)
    first = shared.get(b"first")
    for number in range(30):
        shared.get(str(number).encode())
    assert shared.get(b"first") is not first


def test_what_is_kept_is_bounded_in_bytes_too() -> None:
    shared: Shared[list[int]] = Shared(lambda content: [len(content)])
    for number in range(20_000):
        shared.get(number.to_bytes(4) * 2_500)
    assert len(shared) * 10_000 < 20 * 2**20


def test_large_content_is_found_again_only_while_someone_uses_it() -> None:
    shared: Shared[FrozenMap] = Shared(lambda content: FrozenMap({"size": str(len(content))}))
    used = shared.get(b"x" * 100_000)
    assert shared.get(b"x" * 100_000) is used
    assert len(shared) == 0
    gone = ref(used)
    del used
    assert gone() is None


def test_large_content_that_cannot_be_watched_is_made_anew() -> None:
    shared: Shared[tuple[int, ...]] = Shared(lambda content: (len(content),))
    assert shared.get(b"x" * 100_000) == shared.get(b"x" * 100_000) == (100_000,)
