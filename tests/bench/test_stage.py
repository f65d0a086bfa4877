"""A whole benchmark run, small: sandbox, scheduler and creator in one process."""

import dataclasses

import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.bench import stage
from pilotage.bench.stage import InProcessBench, Stalled
from pilotage.bench.workloads import SCHEDULING_BASIC, UNSCHEDULABLE, BenchWorkload, bench_pod
from pilotage.clock import SystemClock
from pilotage.config.feature_gates import FeatureGates
from pilotage.rng import seeded


def small(**changes: object) -> BenchWorkload:
    sizes = {"nodes": 5, "init_pods": 10, "pods": 40}
    return dataclasses.replace(SCHEDULING_BASIC, **(sizes | changes))  # type: ignore[arg-type]


def bench(workload: BenchWorkload) -> InProcessBench:
    return InProcessBench(workload, SystemClock(), seeded(1), SchedulerOptions(), latency_seconds=0.0)


async def test_every_measured_pod_is_bound_and_counted_once() -> None:
    figures = await bench(small()).run()
    assert figures.pods == 40
    assert len(figures.timeline.latencies()) == 40
    assert all(latency > 0 for latency in figures.timeline.latencies())


async def test_the_schedulers_share_is_part_of_all_cpu() -> None:
    figures = await bench(small(pods=100)).run()
    assert figures.scheduler_cpu_seconds is not None
    assert 0 < figures.scheduler_cpu_seconds < figures.cpu_seconds


async def test_workload_that_does_not_fit_is_reported_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_STALL_SECONDS", 0.3)
    impossible = small(make_pod=lambda number: bench_pod(f"pod-{number}", {"cpu": "64"}))
    with pytest.raises(Stalled, match="0 of 40 bound"):
        await bench(impossible).run()


async def test_pods_that_fit_nowhere_are_done_when_their_status_says_so() -> None:
    tried = dataclasses.replace(UNSCHEDULABLE, nodes=3, init_pods=2, pods=30)
    assert (await bench(tried).run()).pods == 30


async def test_with_latency_only_the_gate_makes_a_cycle_wait() -> None:
    """The answers take 20 ms: one after the other they cannot be quicker than that."""
    tried = dataclasses.replace(UNSCHEDULABLE, nodes=3, init_pods=0, pods=40)
    seconds = {}
    for is_async in (True, False):
        options = SchedulerOptions(feature_gates=FeatureGates({"SchedulerAsyncAPICalls": is_async}))
        figures = await InProcessBench(tried, SystemClock(), seeded(1), options, latency_seconds=0.02).run()
        seconds[is_async] = figures.timeline.seconds()
    assert seconds[False] >= 39 * 0.02 and seconds[True] < seconds[False]
