from __future__ import annotations

import sys

import pytest

from pilotage.cli.status_line import StatusLine
from pilotage.testing import VirtualClock


async def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = VirtualClock()
    status = StatusLine(clock)
    assert not status.is_due
    await clock.advance(31)
    assert status.is_due
    status.show("so \x1b far")
    assert not status.is_due
    status.clear()
    assert capsys.readouterr().err == "so \\x1b far\n"


async def test_a_terminal_has_one_line_that_is_rewritten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    status = StatusLine(VirtualClock())
    assert status.is_due
    status.show("long text")
    status.show("short")
    status.clear()
    status.clear()
    assert capsys.readouterr().err == "\rlong text\rshort    \r     \r"
