"""What a benchmark run has measured, and how single observations become figures."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WINDOW_SECONDS = 1.0
_PERCENTILES = (50, 90, 99)


@dataclass(slots=True)
class BindingTimeline:
    """When each measured pod was created and when it was bound, in seconds of one clock."""

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)

    def note_bound(self, name: str, now: float) -> None:
        if name in self.created:
            self.bound.setdefault(name, now)

    def latencies(self) -> list[float]:
        return sorted(at - self.created[name] for name, at in self.bound.items())

    def seconds(self) -> float:
        """From the first creation to the last binding."""
        if not self.bound:
            return 0.0
        return max(self.bound.values()) - min(self.created.values())

    def windows(self) -> list[float]:
        """Pods bound per second in each window of one second; the last one, which is not full, is left out."""
        if not self.bound:
            return []
        start = min(self.created.values())
        counts = [0] * (int(self.seconds() / WINDOW_SECONDS) + 1)
        for at in self.bound.values():
            counts[int((at - start) / WINDOW_SECONDS)] += 1
        full = counts[:-1] or counts
        return sorted(count / WINDOW_SECONDS for count in full)


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of one run."""

    workload: str
    server: str
    nodes: int
    init_pods: int
    timeline: BindingTimeline
    cpu_seconds: float
    """CPU of the process that schedules, from the first creation until everything is written."""
    scheduler_cpu_seconds: float | None
    """The scheduler's own share of it; None where it is not known."""
    peak_memory_mib: float
    unschedulable: int = 0
    scheduler: str = "pilotage"
    events: int | None = None
    """Events on the server at the end, those of the init pods included; None where they were not counted."""
    other_cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    """CPU of the other processes from the first creation to the last binding, by name."""

    @property
    def pods(self) -> int:
        return len(self.timeline.bound)

    @property
    def all_cpu_seconds(self) -> float:
        """CPU of every process that was looked at, the scheduler's included."""
        return self.cpu_seconds + sum(self.other_cpu_seconds.values())

    @property
    def pods_per_second(self) -> float:
        seconds = self.timeline.seconds()
        return self.pods / seconds if seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        pods = max(self.pods, 1)
        own = self.scheduler_cpu_seconds
        return {
            "workload": self.workload,
            "server": self.server,
            "scheduler": self.scheduler,
            "nodes": self.nodes,
            "initPods": self.init_pods,
            "pods": self.pods,
            "seconds": round(self.timeline.seconds(), 3),
            "podsPerSecond": round(self.pods_per_second, 1),
            "podsPerSecondWindows": _named(self.timeline.windows()),
            "latencySeconds": _named(self.timeline.latencies()),
            "cpuSecondsPer1000Pods": round(self.cpu_seconds / pods * 1000, 4),
            "schedulerMicrosPerPod": None if own is None else round(own / pods * 1e6, 1),
            "peakMemoryMiB": round(self.peak_memory_mib, 1),
            "events": self.events,
            "otherCpuSecondsPer1000Pods": {
                name: round(seconds / pods * 1000, 4) for name, seconds in self.other_cpu_seconds.items()
            },
        }


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` of the values do not exceed; 0 without values."""
    if not ordered:
        return 0.0
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _named(ordered: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": round(percentile(ordered, percent), 4) for percent in _PERCENTILES}


def peak_memory_mib(who: int = resource.RUSAGE_SELF) -> float:
    """The largest resident size of this process (or of its ended children) so far."""
    peak = resource.getrusage(who).ru_maxrss
    return peak / (1024 * 1024) if sys.platform == "darwin" else peak / 1024
