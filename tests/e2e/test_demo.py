from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

from .processes import PATIENCE_SECONDS, PILOTAGE, environment, pilotage

pytestmark = pytest.mark.e2e

REASON = (
    "0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu, 4 Insufficient memory. "
    "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
)


def test_without_a_terminal_it_ends_by_itself_with_the_summary() -> None:
    done = pilotage("demo")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"26 of 27 pods placed on 5 nodes in [\d.]+ s, 1 pending\.", lines[0])
    assert lines[-2:] == ["Pending: default/genome-index", REASON]
    for node in ("worker-1", "worker-2", "disk-1", "disk-2", "gpu-1"):
        assert any(line.startswith(f"{node} ") and "/110" in line for line in lines), node
    assert any(re.match(r"web +0 +12/12 +12 +0 ", line) for line in lines)
    assert any(re.match(r"checkout +1000000 +3/3 +3 +0 ", line) for line in lines)
    assert any(re.match(r"report +-100 +8/8 +0 +8 ", line) for line in lines)
    assert any(re.match(r"cache +0 +1/1 +1 +0 +disk-", line) for line in lines)
    assert any(re.match(r"training +0 +2/2 +2 +0 +gpu-1 x2", line) for line in lines)
    assert "\x1b" not in done.stdout


def test_on_a_terminal_it_is_live_until_ctrl_c() -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 110, 0, 0))
    with subprocess.Popen(
        [PILOTAGE, "demo"], stdin=slave, stdout=slave, stderr=slave, env=environment(TERM="xterm-256color")
    ) as process:
        os.close(slave)
        try:
            seen = _read_until(master, "26 of 27 pods placed, 1 pending")
            assert "export KUBECONFIG=" in seen
            _read_until(master, "Insufficient")
            process.send_signal(signal.SIGINT)
            summary = " ".join(_read_until(master, "").split())
            assert REASON in summary
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            # Nobody reads the terminal any more: a process that still draws would wait for ever, and we for it.
            process.kill()
            os.close(master)


def _read_until(terminal: int, text: str) -> str:
    """What the terminal shows, without colours, up to a text; up to the end if there is none."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    raw, seen = b"", ""
    while not text or text not in seen:
        assert time.monotonic() < deadline, f"{text!r} was not shown; last: {seen[-2000:]!r}"
        try:
            raw += os.read(terminal, 65536)
        except OSError:  # how Linux tells that nobody writes to it any more
            assert not text, f"{text!r} was not shown; last: {seen[-2000:]!r}"
            return seen
        seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", raw.decode(errors="replace"))
    return seen
