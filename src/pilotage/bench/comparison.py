"""Several runs of two schedulers, as ratios of their medians."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pilotage.bench.measure import Figures


@dataclass(frozen=True, slots=True)
class Summary:
    """The medians of the runs of one scheduler."""

    scheduler: str
    pods_per_second: float
    cpu_seconds: float
    peak_memory_mib: float
    all_cpu_seconds: float
    """Of the scheduler, the API server, etcd and the benchmark together."""

    def as_json(self) -> dict[str, Any]:
        return {
            "podsPerSecond": round(self.pods_per_second, 1),
            "cpuSeconds": round(self.cpu_seconds, 2),
            "peakMemoryMiB": round(self.peak_memory_mib, 1),
            "allCpuSeconds": round(self.all_cpu_seconds, 2),
        }


def summary_of(runs: Iterable[Figures], scheduler: str) -> Summary:
    chosen = [run for run in runs if run.scheduler == scheduler]
    return Summary(
        scheduler,
        statistics.median(run.pods_per_second for run in chosen),
        statistics.median(run.cpu_seconds for run in chosen),
        statistics.median(run.peak_memory_mib for run in chosen),
        statistics.median(run.all_cpu_seconds for run in chosen),
    )


def ratios(ours: Summary, theirs: Summary) -> dict[str, float]:
    """Ours divided by theirs: throughput should be large, CPU and memory small.

    `throughputByCpu` is what `throughput` would be if each had the machine to itself and kept it busy: then only counts
    how much CPU all processes together take for the pods. What else the machine does hardly disturbs it.
    """
    return {
        "throughput": round(_divided(ours.pods_per_second, theirs.pods_per_second), 3),
        "throughputByCpu": round(_divided(theirs.all_cpu_seconds, ours.all_cpu_seconds), 3),
        "cpu": round(_divided(ours.cpu_seconds, theirs.cpu_seconds), 3),
        "memory": round(_divided(ours.peak_memory_mib, theirs.peak_memory_mib), 3),
    }


def schedulers_of(runs: Sequence[Figures]) -> list[str]:
    return list(dict.fromkeys(run.scheduler for run in runs))


def _divided(a: float, b: float) -> float:
    return a / b if b else 0.0
