"""`pilotage top` beside a scheduler: printed, and live on a terminal with keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import PATIENCE_SECONDS, PILOTAGE, SandboxProcess, environment, eventually, pilotage

pytestmark = pytest.mark.e2e

MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: giant}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 999}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: hostile}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 998}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: i}]}
"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    folder = tmp_path_factory.mktemp("top")
    (folder / "pods.yaml").write_text(MANIFEST)
    running = SandboxProcess(folder / "kubeconfig", "--nodes", "4", "-f", folder / "pods.yaml")

    def tried() -> int:
        return running.kubectl("get", "pods", "-o", "yaml").stdout.count("Insufficient cpu. preemption")

    eventually("pods were tried", lambda: tried() == 2)
    yield running
    running.end()


def test_once_prints_everything_and_nothing_is_obeyed(sandbox: SandboxProcess) -> None:
    condition = (
        r'{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "evil\u001b[2J\u202e"}'
    )
    patch = f'{{"status": {{"conditions": [{condition}]}}}}'
    patched = sandbox.kubectl("patch", "pod", "hostile", "--subresource=status", "-p", patch)
    assert patched.returncode == 0, patched.stderr
    done = pilotage("top", "--once", "--kubeconfig", sandbox.kubeconfig)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^waiting  2: 2 unschedulable$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^reasons  .*Insufficient cpu: 1", done.stdout, re.MULTILINE), done.stdout
    assert "default/pod/giant" in done.stdout and "1 on nodes" in done.stdout
    assert r"evil\x1b[2J\u202e" in done.stdout and "\x1b" not in done.stdout


def test_wrong_input_has_a_way_out(tmp_path: Path) -> None:
    done = pilotage("top", "--kubeconfig", tmp_path / "none")
    assert done.returncode == 2 and "check --kubeconfig" in done.stderr


def test_keys_open_a_pod_and_go_back_and_quit(sandbox: SandboxProcess) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    command = [PILOTAGE, "top", "--sort", "n", "--kubeconfig", str(sandbox.kubeconfig)]
    with subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment(TERM="xterm-256color")
    ) as process:
        try:
            assert "q quit" in _read_until(master, "default/pod/giant")
            os.write(master, b"\x1b[B\r")
            _read_until(master, "it asked for 4 cpu instead of 998")
            os.write(master, b"\x1b")
            _read_until(master, "q quit")
            os.write(master, b"q")
            assert process.wait(PATIENCE_SECONDS) == 0
            assert termios.tcgetattr(slave) == before
        finally:
            process.kill()
            os.close(slave)
            os.close(master)


def _read_until(terminal: int, text: str) -> str:
    """What the terminal shows, without colours, up to a text."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    raw, seen = b"", ""
    while text not in seen:
        assert time.monotonic() < deadline, f"{text!r} was not shown; last: {seen[-2000:]!r}"
        raw += os.read(terminal, 65536)
        seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", raw.decode(errors="replace"))
    return seen
