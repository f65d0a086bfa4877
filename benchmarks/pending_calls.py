"""How much memory pending API calls take: status patches of as many pods as wait, none of which can be sent.

    python benchmarks/pending_calls.py [--calls 100000]

The pods themselves are made first and do not count: the scheduler has them anyway. What counts is what a call brings:
itself, its place in the queue, its condition and message, and the pod as it is shown while the call is pending.
"""

from __future__ import annotations

import argparse
import gc
from pathlib import Path

from pilotage.api.conditions import PodCondition
from pilotage.calls.call_queue import CallQueue
from pilotage.calls.pod_status import PodStatusPatch
from pilotage.clock import perf_seconds
from pilotage.model import KINDS
from pilotage.testing import pod


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    count: int = parser.parse_args().calls
    pods = [KINDS["pods"].decode(pod(f"p-{n}").uid(f"uid-{n}").requests(cpu="4")._built_json()) for n in range(count)]
    gc.collect()
    before, started = resident_mib(), perf_seconds()
    queue, shown = CallQueue(), []
    for number, one in enumerate(pods):
        # Every pod has its own message, as if each had its own reasons.
        message = f"0/5000 nodes are available: {number} Insufficient cpu, {5000 - number % 5000} Insufficient memory."
        condition = PodCondition("PodScheduled", "False", "Unschedulable", message, 1, "2026-01-01T00:00:00Z")
        queue.add(PodStatusPatch(one, condition, nomination=""), lambda outcome: None, 0.0)
        shown.append(queue.shown(one.uid, one))
    seconds = perf_seconds() - started
    gc.collect()
    used = resident_mib() - before
    print(
        f"{queue.pending:,} pending calls: {used:.0f} MiB, {used * 2**20 / count:,.0f} bytes and "
        f"{seconds / count * 1e6:.1f} us each"
    )


if __name__ == "__main__":
    main()
