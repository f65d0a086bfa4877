"""Queues whose rules chase each other: the circle is slowed down, people are told, and everybody runs in the end."""

from __future__ import annotations

from pilotage.jobs.controller.flapping import Flapping, Recreations
from pilotage.model.kueue import EvictionCount, SchedulingStats, Workload, WorkloadStatus
from pilotage.model.meta import ObjectMeta
from pilotage.sandbox.storage.records import Change
from pilotage.testing import VirtualClock
from tests.jobs.live.world import cluster_queue, flavor, job, living, local_queue, node, priority_class


async def test_a_circle_of_preemptions_is_slow_and_ends() -> None:
    """A borrower preempts two small ones; a more important borrower gets the quota; the small ones reclaim it."""
    async with living(nodes=[node("n", cpu=64)]) as cluster:
        cluster.create(flavor("std"), *(priority_class(f"p{value}", value) for value in (0, 10, 20, 30)))
        policy = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
        cluster.create(cluster_queue("a", {"std": 6}, cohortName="both", preemption=policy), local_queue("a", "a"))
        cluster.create(cluster_queue("b", {"std": 6}, cohortName="both"), local_queue("b", "b"))
        cluster.create(job("b-large", cpu=5, queue="b", priority="p30", seconds=120))
        cluster.create(job("a-large", cpu=4, queue="a", priority="p30", seconds=300))
        cluster.create(*(job(f"a-small-{n}", cpu=1, queue="a", priority="p0", seconds=30) for n in (1, 2)))
        await cluster.run(5)
        cluster.create(job("b-borrower", cpu=2, queue="b", priority="p20", seconds=30))
        await cluster.run(5)
        cluster.create(job("a-borrower", cpu=3, queue="a", priority="p10", seconds=30))
        await cluster.run(60)
        reasons = [one["reason"] for one in cluster.objects("Event")]
        assert reasons.count("Preempted") < 60
        await cluster.run(400)
        names = ("a-small-1", "a-small-2", "a-borrower", "b-borrower")
        assert {cluster.condition(name, "Finished") for name in names} == {"True/Succeeded"}


def preempted(times: int) -> Workload:
    stats = SchedulingStats(evictions=(EvictionCount(reason="Preempted", count=times),))
    return Workload(metadata=ObjectMeta(name="w", namespace="ns"), status=WorkloadStatus(scheduling_stats=stats))


async def test_the_fourth_preemption_in_a_row_is_held_longer_and_longer() -> None:
    clock = VirtualClock()
    flapping = Flapping(clock)
    held = []
    for times in range(1, 12):
        held.append(flapping.seconds_to_hold(preempted(times)))
        await clock.advance(held[-1])
        assert flapping.seconds_to_hold(preempted(times)) == 0, "the same eviction is not held twice"
    assert held == [0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]
    await clock.advance(61)
    assert flapping.seconds_to_hold(preempted(12)) == 0, "a quiet minute is enough"


async def test_a_workload_that_is_deleted_whenever_it_is_made_is_made_less_and_less_often() -> None:
    async with living(nodes=[node("n", cpu=64)]) as cluster:
        cluster.create(flavor("std"), cluster_queue("a", {"std": 6}), local_queue("a", "a"))
        changes: list[Change] = []
        cluster.cluster.api.store.subscribe("workloads.kueue.x-k8s.io", changes.append)
        cluster.create(job("unwanted", cpu=1, queue="a"))
        for _ in range(100):
            for found in cluster.objects("Workload"):
                cluster.delete("Workload", found["metadata"]["name"])
            await cluster.run(0.1)
        assert 4 <= [change.type for change in changes].count("ADDED") <= 8
        await cluster.run(20)
        assert cluster.condition("unwanted", "Admitted").startswith("True"), "it is made again when it is let be"


async def test_only_what_was_made_lately_is_remembered() -> None:
    clock = VirtualClock()
    recreations = Recreations(clock)
    for number in range(5):
        recreations.created(f"ns/w-{number}")
        await clock.advance(30)
    assert list(recreations._streaks) == ["ns/w-3", "ns/w-4"]
