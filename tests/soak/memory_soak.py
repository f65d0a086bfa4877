"""Pods come and go by the ten thousand, and the scheduler's memory is watched.

    python -m tests.soak.memory_soak --pods 32000 --warm-up 16000

Fails (exit code 1) if the scheduler's resident memory grows by more than 1 MB per 10,000 pods after the warm-up, or if
a pod is left unbound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.real_cluster.client import Client
from tests.real_cluster.objects import node
from tests.real_cluster.scheduler_process import SchedulerProcess
from tests.real_cluster.servers import SandboxServer, eventually
from tests.soak.traffic import Traffic
from tests.soak.verdict import Figure, exit_code
from tests.soak.witness import Witness

NODES, PODS_PER_NODE = 20, 40
GROWTH_LIMIT_MB = 1.0
PODS_PER_UNIT = 10_000
SAMPLE_PODS = 250
Sample = tuple[int, float]
"""How many pods were bound so far, and the resident memory in MB."""


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"process {pid} has no memory")


def open_files(pid: int) -> int:
    """Nearly all of them are connections to the API server."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def growth(samples: Sequence[Sample]) -> float:
    """MB per 10,000 pods: the slope of the line that fits the samples best."""
    mean_pods = sum(pods for pods, _ in samples) / len(samples)
    mean_mb = sum(mb for _, mb in samples) / len(samples)
    spread = sum((pods - mean_pods) ** 2 for pods, _ in samples)
    return sum((pods - mean_pods) * (mb - mean_mb) for pods, mb in samples) / spread * PODS_PER_UNIT


def soak(pods: int, warm_up: int, creators: int, folder: Path) -> list[Figure]:
    server = SandboxServer(folder)
    server.start()
    client = Client(server.admin)
    for number in range(NODES):
        client.create(node(f"n{number:02}", cpu=str(PODS_PER_NODE // 10)))
    with ExitStack() as stack:
        stack.callback(server.stop)
        log = folder / "scheduler.log"
        scheduler = SchedulerProcess(server.scheduler, log, "--secure-port=0", "--leader-elect=false")
        stack.callback(scheduler.end)
        eventually("the scheduler is ready", lambda: "scheduling at" in scheduler.said(), seconds=60.0)
        witness = stack.enter_context(Witness(Client(server.admin), 100 * PODS_PER_NODE))
        share, most = -(-pods // creators), NODES * PODS_PER_NODE * 3 // 4 // creators
        traffic = [
            stack.enter_context(
                Traffic(Client(server.admin), witness, most=most, pause_seconds=0.0, total=share, prefix=f"c{number}-")
            )
            for number in range(creators)
        ]
        samples = _watch(scheduler, witness, traffic, pods)
        files = open_files(scheduler.pid)
        eventually("every pod is bound", lambda: all(p["spec"].get("nodeName") for p in client.list("pods")))
        bound = len(witness.bound_at)
    warm = [sample for sample in samples if sample[0] >= warm_up]
    return [
        Figure("pods bound", bound),
        Figure("pods that were never bound", sum(one.created for one in traffic) - bound, 0),
        Figure("memory after the warm-up", warm[0][1], None, " MB"),
        Figure("memory at the end", warm[-1][1], None, " MB"),
        Figure("open files at the end", files),
        Figure("growth per 10,000 pods after the warm-up", growth(warm), GROWTH_LIMIT_MB, " MB"),
    ]


def _watch(scheduler: SchedulerProcess, witness: Witness, traffic: Sequence[Traffic], pods: int) -> list[Sample]:
    samples: list[Sample] = []
    began, due, told = time.monotonic(), 0, 0
    while not all(one.is_done for one in traffic):
        time.sleep(0.05)
        if not scheduler.is_running:
            raise SystemExit(f"the scheduler has ended:\n{scheduler.said()[-2000:]}")
        bound = len(witness.bound_at)
        if bound >= due:
            samples.append((bound, resident_mb(scheduler.pid)))
            due = bound + SAMPLE_PODS
        if bound - told >= PODS_PER_UNIT // 5:
            told = bound
            rate = bound / (time.monotonic() - began)
            print(f"{bound}/{pods} pods, {rate:.0f}/s, {samples[-1][1]:.1f} MB", flush=True)
    return samples


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=32_000, help="how many come and go")
    parser.add_argument("--warm-up", type=int, default=16_000, help="pods after which memory is compared")
    parser.add_argument("--creators", type=int, default=4, help="clients that create and delete at the same time")
    options = parser.parse_args(arguments)
    if options.pods < options.warm_up + 4 * SAMPLE_PODS:
        parser.error(f"--pods must be at least {4 * SAMPLE_PODS} more than --warm-up")
    print(f"memory soak: {options.pods} pods, warm-up {options.warm_up}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pilotage-soak-") as folder:
        return exit_code(soak(options.pods, options.warm_up, options.creators, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
