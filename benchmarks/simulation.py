"""What `pilotage simulate` takes: CPU time and memory for a trace of so many nodes and pods.

    python benchmarks/simulation.py --nodes 1000 --pods 20000
    python benchmarks/simulation.py --nodes 5000 --pods 100000 --days 1

Two hundred applications of forty sizes; arrivals and lifetimes are exponential, and two thirds of the CPU are in use.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from pathlib import Path

from pilotage.assembly import SchedulerOptions
from pilotage.clock import cpu_seconds
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.simulation import Progress, TraceInput, simulate
from pilotage.lab.trace.format import TraceHeader, Writer
from pilotage.rng import seeded
from pilotage.testing import node, pod

APPLICATIONS = 200
CPUS = (100, 250, 500, 1000, 2000, 4000)
MEMORIES = (128, 256, 512, 1024, 4096)
NODE_CPU = 32_000
LOAD = 2 / 3


def write(path: Path, nodes: int, pods: int, seconds: float) -> None:
    rng, time = seeded(1), 0.0
    sizes = [(rng.choice(CPUS), rng.choice(MEMORIES)) for _ in range(40)]
    apps = [
        pod(f"app-{number}")
        .label("app", f"app-{number}")
        .requests(cpu=f"{sizes[number % 40][0]}m", memory=f"{sizes[number % 40][1]}Mi")
        .json()
        for number in range(APPLICATIONS)
    ]
    mean_cpu = sum(cpu for cpu, _ in sizes) / len(sizes)
    lifetime = LOAD * nodes * NODE_CPU * seconds / (pods * mean_cpu)
    with Writer(path, TraceHeader(pilotage_trace=1, start="2026-11-16T00:00:00Z", source="benchmark")) as trace:
        for number in range(nodes):
            trace.put(0, node(f"n{number}").cpu("32").memory("128Gi").zone(f"z{number % 3}").json())
        for number in range(pods):
            time += rng.expovariate(pods / seconds)
            app = rng.choice(apps)
            one = {**app, "metadata": {**app["metadata"], "name": f"p{number}"}}
            trace.put(time, one, runs=rng.expovariate(1 / min(lifetime, seconds / 8)))


class Course:
    """CPU time over the course of a run, said as it goes: does the cost of an event stay what it is?"""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._marks = [(0, cpu_seconds())]

    def note(self, progress: Progress) -> None:
        if progress.pods >= len(self._marks) * self._steps:
            (before, then), (pods, now) = self._marks[-1], (progress.pods, cpu_seconds())
            self._marks.append((pods, now))
            cost = 1e6 * (now - then) / (pods - before)
            print(f"  pods {before:>9,} to {pods:>9,}: {cost:6.0f} us per pod", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--days", type=float, default=1.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl.gz"
        write(trace, given.nodes, given.pods, given.days * 86_400)
        course = Course(max(1, given.pods // 8))
        started = cpu_seconds()
        until = ReplaySettings(until=given.days * 86_400)
        result = simulate(
            TraceInput(trace), SchedulerOptions(), until, Path(folder) / "result", on_progress=course.note
        )
        seconds = cpu_seconds() - started
    pods, mean = result.totals["pods"], result.totals["mean"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.nodes:,} nodes, {pods['pods']:,} pods ({pods['ended']:,} ended), {mean['used_cpu']:.0%} CPU used")
    print(f"CPU {seconds:.1f} s, {1e6 * seconds / pods['pods']:.0f} us per pod, peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
