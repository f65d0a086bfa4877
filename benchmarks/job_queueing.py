"""How much work is it to queue jobs? Two measurements of the engine of workload queueing, in virtual time.

    python benchmarks/job_queueing.py [--workloads 15000] [--inadmissible 10000]

1. 15,000 workloads of 5 priorities in 30 ClusterQueues of 6 cohorts, with preemption and borrowing, are created, more
   than the quota can hold, admitted, preempted, admitted again and finished. Every status comes back as from a watch.
2. How long it takes to admit and finish a stream of workloads in a BestEffortFIFO queue, alone and with 10,000
   workloads put aside in the same queue.
"""

from __future__ import annotations

import argparse
import heapq
import random
from itertools import count

import msgspec

from pilotage.clock import cpu_seconds, rfc3339
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import StatusChanged
from pilotage.jobs.engine import JobQueueing
from pilotage.model.kueue import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from pilotage.testing.virtual_clock import VirtualClock

PRIORITIES = (0, 10, 20, 50, 100)


class Cluster:
    """The engine with an API in memory, and jobs that run for a while."""

    def __init__(self, rng: random.Random) -> None:
        self.clock = VirtualClock()
        self.rng = rng
        self.engine = JobQueueing(self.clock, rng, QueueingConfiguration(wait_for_pods_ready=None))
        self.engine.set_namespace("ns", {})
        self.engine.upsert(msgspec.convert({"metadata": {"name": "std"}}, ResourceFlavor))
        self.objects: dict[str, Workload] = {}
        self.finished = 0
        self.admissions = 0
        self.evictions = 0
        self._ends: list[tuple[float, int, str]] = []
        self._runs: dict[str, int] = {}
        self._order = count()

    def add_queue(self, name: str, cohort: str, cpu: int, **spec: object) -> None:
        quotas = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": f"{4 * cpu}Gi"}]
        groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "std", "resources": quotas}]}]
        body = {"resourceGroups": groups, "cohortName": cohort, "namespaceSelector": {}, **spec}
        self.engine.upsert(msgspec.convert({"metadata": {"name": name}, "spec": body}, ClusterQueue))
        local = {"metadata": {"name": f"lq-{name}", "namespace": "ns"}, "spec": {"clusterQueue": name}}
        self.engine.upsert(msgspec.convert(local, LocalQueue))

    def submit(self, name: str, queue: str, cpu: float, priority: int, parallelism: int = 1) -> None:
        requests = {"cpu": cpu, "memory": f"{int(2 * cpu)}Gi"}
        template = {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}
        spec = {
            "queueName": f"lq-{queue}",
            "priority": priority,
            "podSets": [{"name": "main", "count": parallelism, "template": template}],
        }
        metadata = {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "creationTimestamp": rfc3339(self.clock.time()),
        }
        workload = msgspec.convert({"metadata": metadata, "spec": spec}, Workload)
        self.objects[workload.key] = workload
        self.engine.upsert(workload)

    def settle(self) -> None:
        while True:
            has_more = self.engine.cycle()
            if not self._perform() and not has_more:
                return

    def _perform(self) -> bool:
        news = False
        for effect in self.engine.take_effects():
            if not isinstance(effect, StatusChanged):
                continue
            workload = effect.workload
            self.objects[workload.key] = workload
            self.engine.upsert(workload)
            true = {one.type for one in workload.status.conditions if one.status == "True"}
            if "Evicted" in true and "QuotaReserved" in true:
                self.evictions += 1
                self._runs.pop(workload.key, None)
                self.engine.pods_gone(workload.key)
                news = True
            elif "Admitted" in true and "Finished" not in true and workload.key not in self._runs:
                self._start(workload.key)
        return news

    def _start(self, key: str) -> None:
        self.admissions += 1
        run = self._runs[key] = next(self._order)
        heapq.heappush(self._ends, (self.clock.monotonic() + self.rng.randint(30, 300), run, key))

    def next_end(self) -> float | None:
        return self._ends[0][0] if self._ends else None

    def end_due(self) -> None:
        """Finish the jobs whose time has come."""
        while self._ends and self._ends[0][0] <= self.clock.monotonic():
            _, run, key = heapq.heappop(self._ends)
            if self._runs.get(key) == run:
                del self._runs[key]
                self.finished += 1
                self.engine.finished(key, "Succeeded", "")

    def run(self) -> None:
        """Until every job has ended."""
        self.settle()
        while (at := self.next_end()) is not None:
            self.clock.step(max(0.0, at - self.clock.monotonic()))
            self.end_due()
            self.settle()


def crowded_hours(workloads: int, per_second: int, seed: int) -> None:
    cluster = Cluster(random.Random(seed))
    preemption = {
        "withinClusterQueue": "LowerPriority",
        "reclaimWithinCohort": "LowerPriority",
        "borrowWithinCohort": {"policy": "LowerPriority"},
    }
    for number in range(30):
        cluster.add_queue(f"cq-{number:02}", f"cohort-{number % 6}", 200, preemption=preemption)
    rng, begin = random.Random(seed + 1), cpu_seconds()
    made = 0
    while made < workloads:
        for _ in range(min(per_second, workloads - made)):
            queue = f"cq-{rng.randrange(30):02}"
            cluster.submit(f"w{made:05}", queue, rng.randint(1, 8), rng.choice(PRIORITIES), rng.randint(1, 8))
            made += 1
        cluster.settle()
        cluster.clock.step(1)
        cluster.end_due()
    cluster.run()
    spent = cpu_seconds() - begin
    cluster.engine.check()
    print(
        f"{workloads} workloads in 30 queues: {cluster.finished} finished, {cluster.admissions} admissions,"
        f" {cluster.evictions} evictions in {spent:.1f} s of CPU ({1000 * spent / workloads:.2f} ms each),"
        f" {cluster.clock.monotonic():.0f} s of virtual time"
    )


def stream(inadmissible: int, shapes: int, others: int = 3000) -> float:
    """CPU seconds to admit and finish `others` small workloads, with so many put aside in the same queue."""
    cluster = Cluster(random.Random(7))
    cluster.add_queue("busy", "", 64)
    cluster.submit("rock", "busy", 32, 100)
    cluster.settle()
    for number in range(inadmissible):
        # Each would fit if the rock were gone.
        cluster.submit(f"big-{number:05}", "busy", 33 + number % shapes / 1000, 10)
    cluster.settle()
    begin = cpu_seconds()
    for number in range(others):
        cluster.submit(f"small-{number:05}", "busy", 1, 0)
        cluster.settle()
        cluster.engine.finished(f"ns/small-{number:05}", "Succeeded", "")
        cluster.settle()
    return cpu_seconds() - begin


def crowd(inadmissible: int) -> None:
    for shapes in (1, inadmissible):
        alone = crowded = 1e9
        for _ in range(3):  # interleaved: the machine may be busy
            alone = min(alone, stream(0, 1))
            crowded = min(crowded, stream(inadmissible, shapes))
        more = 100 * (crowded / alone - 1)
        print(
            f"3000 small workloads: {alone:.2f} s alone, {crowded:.2f} s beside {inadmissible} put aside of {shapes}"
            f" shape(s): {more:+.0f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=15_000)
    parser.add_argument("--per-second", type=int, default=4, help="how many are created in a second")
    parser.add_argument("--inadmissible", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.workloads:
        crowded_hours(options.workloads, options.per_second, options.seed)
    if options.inadmissible:
        crowd(options.inadmissible)


if __name__ == "__main__":
    main()
