"""`pilotage run` as a process: started, paused, killed, and its words kept for when a test fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

PILOTAGE = str(Path(sys.executable).parent / "pilotage")


class SchedulerProcess:
    """Ends with the test that started it."""

    def __init__(self, kubeconfig: Path, log: Path, *arguments: str | Path) -> None:
        self.log = log
        command = [PILOTAGE, "run", "--kubeconfig", str(kubeconfig), *map(str, arguments)]
        kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/", env={**kept, "TERM": "dumb"}
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def pause(self) -> None:
        """As a frozen machine would: everybody at once."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        if not self.is_running:
            return
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in (self.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait()

    def end(self, seconds: float = 20.0) -> int:
        """SIGTERM; returns the exit code."""
        if self.is_running:
            self._process.terminate()
        return self.wait(seconds)

    def wait(self, seconds: float = 20.0) -> int:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
