"""The benchmark PreemptionBasic, small: nodes are full of pods that must go."""

import dataclasses

from pilotage.assembly import SchedulerOptions
from pilotage.bench.stage import InProcessBench
from pilotage.bench.workloads import PREEMPTION_BASIC
from pilotage.clock import SystemClock
from pilotage.rng import seeded


async def test_every_preemptor_takes_the_place_of_four_pods() -> None:
    workload = dataclasses.replace(PREEMPTION_BASIC, nodes=5, init_pods=20, pods=5)
    bench = InProcessBench(workload, SystemClock(), seeded(1), SchedulerOptions(), latency_seconds=0.0)
    figures = await bench.run()
    assert figures.pods == 5


async def test_victims_that_change_are_not_counted_as_bound() -> None:
    workload = dataclasses.replace(PREEMPTION_BASIC, nodes=4, init_pods=16, pods=1)
    bench = InProcessBench(workload, SystemClock(), seeded(1), SchedulerOptions(), latency_seconds=0.0)
    figures = await bench.run()
    assert figures.pods == 1
    assert [name for name in figures.timeline.bound if not name.startswith("pod-")] == []
