"""A child process of the benchmark, and what it has used."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from pathlib import Path

from pilotage.bench.process_cpu import cpu_seconds_of

_STOP_SECONDS = 10.0


class ChildFailed(Exception):
    """A child process ended although it was still needed."""


class Child:
    """A command in a process of its own, usually `pilotage ARGUMENTS`."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._name = name

    @classmethod
    async def start(cls, *arguments: str) -> Child:
        process = await asyncio.create_subprocess_exec(*_command(arguments), stdout=DEVNULL, stdin=DEVNULL)
        return cls(process, f"pilotage {arguments[0]}")

    @classmethod
    async def start_program(cls, program: Path, *arguments: str, log: Path) -> Child:
        """Another program than pilotage; its messages go to `log`."""
        with log.open("ab") as messages:
            process = await asyncio.create_subprocess_exec(
                program, *arguments, stdout=messages, stderr=messages, stdin=DEVNULL
            )
        return cls(process, program.name)

    def check(self) -> None:
        """Raise if the child has ended."""
        code = self._process.returncode
        if code is not None:
            raise ChildFailed(f"{self._name} ended with exit code {code}; its messages are above")

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        return cpu_seconds_of(self._process.pid)

    def peak_memory_mib(self) -> float:
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0.0

    async def stop(self) -> None:
        if self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pilotage", *arguments]
