"""What a plugin costs: the same benchmark without and with it, in turns, each run in a process of its own.

    python benchmarks/with_plugin.py benchmarks/plugins/*.py --pairs 5

Machines are rarely quiet, so that single runs say little: each pair runs one after the other, in alternating order,
and the median of the ratios within the pairs counts. A ratio of CPU per pod of 1.08 means 8 % more than without.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from statistics import median

import msgspec

FIGURES = {
    "CPU per pod": "cpuSecondsPer1000Pods",
    "scheduler's own": "schedulerMicrosPerPod",
    "pods/s": "podsPerSecond",
}


def run(workload: list[str], plugin: Path | None) -> dict[str, float]:
    """The figures of one benchmark run."""
    command = [sys.executable, "-m", "pilotage", "bench", "-o", "json", *workload]
    if plugin is not None:
        command += ["--plugin", str(plugin)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return msgspec.json.decode(done.stdout, type=dict)


def ratios(workload: list[str], plugin: Path, pairs: int) -> dict[str, list[float]]:
    """For each figure its value with the plugin divided by that without, pair by pair."""
    found: dict[str, list[float]] = {name: [] for name in FIGURES}
    for number in range(pairs):
        first, second = (None, plugin) if number % 2 == 0 else (plugin, None)
        runs = {first: run(workload, first), second: run(workload, second)}
        for name, field in FIGURES.items():
            found[name].append(runs[plugin][field] / runs[None][field])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugins", type=Path, nargs="+", help="plugin files, measured one after another")
    parser.add_argument("--pairs", type=int, default=5, help="runs without and with the plugin (default 5 each)")
    parser.add_argument("--workload", default="SchedulingBasic")
    parser.add_argument("--init-pods", default="500")
    parser.add_argument("--pods", default="5000")
    given = parser.parse_args()
    workload = ["--workload", given.workload, "--init-pods", given.init_pods, "--pods", given.pods]
    for plugin in given.plugins:
        print(f"{plugin.stem}, with / without, median of {given.pairs} pairs (smallest .. largest):", flush=True)
        for name, found in ratios(workload, plugin, given.pairs).items():
            print(f"  {name:16} {median(found):.3f}  ({min(found):.3f} .. {max(found):.3f})", flush=True)


if __name__ == "__main__":
    main()
