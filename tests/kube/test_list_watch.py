"""Joining lines from chunks that are cut anywhere, and delays between attempts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import list_watch
from pilotage.kube.list_watch import FIRST_SECONDS, LONGEST_SECONDS, Backoff, LineJoiner, LineTooLong
from pilotage.rng import seeded


@given(st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"0", b"\n")), max_size=30))
def test_nothing_is_lost_or_reordered_and_only_complete_lines_come_out(chunks: list[bytes]) -> None:
    joiner = LineJoiner()
    pieces = [joiner.complete(chunk) for chunk in chunks]
    assert all(piece.endswith(b"\n") for piece in pieces if piece)
    whole = b"".join(chunks)
    assert b"".join(pieces) == whole[: whole.rfind(b"\n") + 1]


def test_all_complete_lines_of_a_chunk_come_out_at_once() -> None:
    joiner = LineJoiner()
    assert joiner.complete(b"a") == b""
    assert joiner.complete(b"b\nc\nd") == b"ab\nc\n"
    assert joiner.complete(b"\n") == b"d\n"


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_watch, "LONGEST_LINE_BYTES", 10)
    joiner = LineJoiner()
    joiner.complete(b"12345")
    with pytest.raises(LineTooLong):
        joiner.complete(b"678901")


def test_delays_double_up_to_the_limit_and_are_spread() -> None:
    runs = [[backoff.next_delay() for _ in range(14)] for backoff in (Backoff(seeded(seed)) for seed in range(50))]
    for step in range(8):
        column = [run[step] for run in runs]
        base = FIRST_SECONDS * 2**step
        assert all(base * 0.5 <= delay <= base * 1.5 for delay in column)
        assert max(column) > base * 1.2 and min(column) < base * 0.8
    assert all(LONGEST_SECONDS / 2 <= run[-1] <= LONGEST_SECONDS for run in runs)


def test_after_a_success_delays_are_short_again() -> None:
    backoff = Backoff(seeded(1))
    for _ in range(10):
        backoff.next_delay()
    backoff.reset()
    assert backoff.next_delay() <= FIRST_SECONDS * 1.5
