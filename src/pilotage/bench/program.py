"""A program of the control plane in a process of its own: started, looked at, stopped, killed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_STOP_SECONDS: Final = 20.0
_LAST_WORDS: Final = 5


class ProgramFailed(Exception):
    """A program ended although it was needed, or did not get ready; the message carries its last words."""


class ServerProgram:
    """A command line that can be started again and again; what it says goes to a file."""

    def __init__(self, command: Sequence[str | Path], log: Path, folder: Path | None = None) -> None:
        """`folder` is where it runs; by default where its log is."""
        self._command = [str(word) for word in command]
        self._log = log
        self._folder = folder or log.parent
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return Path(self._command[0]).name

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ProgramFailed(f"{self.name} was not started")
        return self._process.pid

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder
            )

    def check(self) -> None:
        """Raise if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise ProgramFailed(f"{self.name} ended with exit code {self._process.returncode}: {self.last_words()}")

    def last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return " | ".join(lines[-_LAST_WORDS:]) or "it said nothing"

    def stop(self) -> None:
        """Ask it to end; make it end if it takes too long."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
