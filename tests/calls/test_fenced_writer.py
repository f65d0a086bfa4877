from __future__ import annotations

import pytest

from pilotage.calls.fenced_writer import FencedWriter, NotLeading
from pilotage.model import KINDS
from tests.calls.captured_writes import CapturedWrites

PODS = KINDS["pods"]


async def test_leader_writes() -> None:
    writer = CapturedWrites()
    await FencedWriter(writer, lambda: True).bind("ns", "p", "u", "n")
    assert [write.verb for write in writer.writes] == ["bind"]


async def test_nothing_is_written_after_the_lease_has_run_out() -> None:
    writer = CapturedWrites()
    fenced = FencedWriter(writer, lambda: False)
    for write in (
        fenced.bind("ns", "p", "u", "n"),
        fenced.create(PODS, "ns", b"{}"),
        fenced.update(PODS, "ns", "p", b"{}"),
        fenced.patch(PODS, "ns", "p", b"{}"),
        fenced.delete(PODS, "ns", "p"),
    ):
        with pytest.raises(NotLeading):
            await write
    assert writer.writes == []


async def test_it_is_asked_for_every_write_anew() -> None:
    answers = iter([True, False])
    fenced = FencedWriter(CapturedWrites(), lambda: next(answers))
    await fenced.patch(PODS, "ns", "p", b"{}")
    with pytest.raises(NotLeading):
        await fenced.patch(PODS, "ns", "p", b"{}")
