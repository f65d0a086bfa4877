"""A benchmark in one process: the measured pods come all at once."""

from __future__ import annotations

import random

from pilotage.assembly import SchedulerOptions
from pilotage.bench.measure import BindingTimeline, Figures, peak_memory_mib
from pilotage.bench.stage import BenchStage
from pilotage.bench.workloads import BenchWorkload
from pilotage.clock import Clock, cpu_seconds


class InProcessBench:
    """One run of one workload."""

    def __init__(
        self,
        workload: BenchWorkload,
        clock: Clock,
        rng: random.Random,
        options: SchedulerOptions,
        latency_seconds: float,
    ) -> None:
        self._workload = workload
        self._stage = BenchStage(workload, clock, rng, options, latency_seconds)
        self.api = self._stage.api

    async def run(self) -> Figures:
        async with self._stage.running():
            return await self._measure()

    async def _measure(self) -> Figures:
        workload, stage = self._workload, self._stage
        timeline = stage.timeline = BindingTimeline()
        own_before, cpu_before = stage.own_cpu_seconds(), cpu_seconds()
        pods = (workload.make_pod(number) for number in range(workload.pods))
        await stage.schedule("pods", pods, changes=True, at_once=workload.comes_at_once)
        stage.progress.finish(f"pods: {workload.pods:,} bound")
        await stage.all_written()
        cpu, own = cpu_seconds() - cpu_before, stage.own_cpu_seconds() - own_before
        return Figures(
            workload=workload.name,
            server="in-process",
            nodes=workload.nodes,
            init_pods=workload.init_pods,
            timeline=timeline,
            cpu_seconds=cpu,
            scheduler_cpu_seconds=own,
            peak_memory_mib=peak_memory_mib(),
        )
