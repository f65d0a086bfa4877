"""How much CPU time a process has used, seen from outside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a running process so far, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """What some processes use from now on."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """Process ids by the name under which their share is shown."""
        self._pids = dict(pids)
        self._before = self._now()

    def used(self) -> dict[str, float]:
        return {name: now - self._before[name] for name, now in self._now().items()}

    def _now(self) -> dict[str, float]:
        return {name: cpu_seconds_of(pid) for name, pid in self._pids.items()}
