"""Elastic Jobs: they shrink without a restart, and what they give up is free at once; to grow they queue again."""

from __future__ import annotations

from pilotage.jobs.adapters import marks
from tests.jobs.live.world import QueueingWorld, job, living, queue

ELASTIC = {marks.ELASTIC: "true"}


def resize(cluster: QueueingWorld, count: int) -> None:
    cluster.change("Job", "wide", {"spec": {"parallelism": count}})


async def test_quota_that_an_elastic_job_gives_up_goes_to_the_next_and_it_runs_on() -> None:
    async with living(nodes=3) as cluster:
        cluster.create(*queue(cpu=4), job("wide", parallelism=4, completions=40, annotations=ELASTIC))
        await cluster.run(10)
        started = cluster.job("wide")["status"]["startTime"]
        cluster.create(job("next", parallelism=2))
        await cluster.run(5)
        assert cluster.is_suspended("next")
        resize(cluster, 2)
        await cluster.run(10)
        assert not cluster.is_suspended("next")
        assert cluster.job("wide")["status"]["startTime"] == started, "it was not stopped"
        assert len(cluster.pods("wide")) == 2
        assert cluster.workload("wide")["status"]["reclaimablePods"] == [{"name": "main", "count": 2}]


async def test_an_elastic_job_that_grows_waits_for_quota_as_a_whole() -> None:
    async with living(nodes=3) as cluster:
        cluster.create(*queue(cpu=4), job("wide", parallelism=4, completions=40, annotations=ELASTIC))
        await cluster.run(10)
        resize(cluster, 2)
        await cluster.run(5)
        cluster.create(job("next", parallelism=2))
        await cluster.run(5)
        resize(cluster, 3)
        await cluster.run(20)
        assert cluster.is_suspended("wide") and not cluster.is_suspended("next")
        assert not cluster.pods("wide")


async def test_a_job_that_is_not_elastic_is_queued_anew_when_it_shrinks() -> None:
    async with living(nodes=3) as cluster:
        cluster.create(*queue(cpu=4), job("wide", parallelism=4, completions=40))
        await cluster.run(10)
        before = cluster.workload("wide")["metadata"]["uid"]
        resize(cluster, 2)
        await cluster.run(20)
        assert cluster.workload("wide")["metadata"]["uid"] != before
