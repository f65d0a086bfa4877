"""Sharing of equal content is bounded and keeps what is in use."""

from __future__ import annotations

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
