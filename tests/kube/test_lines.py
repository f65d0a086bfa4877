"""Joining lines from chunks that are cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import lines
from pilotage.kube.lines import LineJoiner, LineTooLong


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
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 10)
    joiner = LineJoiner()
    joiner.complete(b"12345")
    with pytest.raises(LineTooLong):
        joiner.complete(b"678901")
