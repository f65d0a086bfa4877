"""What a plugin costs: the same benchmark without and with it, in turns, each run in a process of its own.

    python benchmarks/with_plugin.py benchmarks/plugins/*.py --pairs 5

Machines are rarely quiet, so that single runs say little: each pair runs one after the other, in alternating order,
and the median of the ratios within the pairs counts. A ratio of CPU per pod of 1.08 means 8 % more than without. Where
others use the machine even that is rough, because they slow some runs down and others not; the ratio of the best run
with to the best run without the plugin is nearer to the truth then.
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


def measured(workload: list[str], plugin: Path, pairs: int) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Figures without and with the plugin, pair by pair."""
    found = []
    for number in range(pairs):
        order = (None, plugin) if number % 2 == 0 else (plugin, None)
        runs = {which: run(workload, which) for which in order}
        found.append((runs[None], runs[plugin]))
    return found


def show(name: str, field: str, runs: list[tuple[dict[str, float], dict[str, float]]]) -> None:
    ratios = [having[field] / without[field] for without, having in runs]
    best = max if field == "podsPerSecond" else min
    of_best = best(having[field] for _, having in runs) / best(without[field] for without, _ in runs)
    print(f"  {name:16} {median(ratios):.3f}  ({min(ratios):.3f} .. {max(ratios):.3f})  best runs {of_best:.3f}")


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
        runs = measured(workload, plugin, given.pairs)
        for name, field in FIGURES.items():
            show(name, field, runs)


if __name__ == "__main__":
    main()
