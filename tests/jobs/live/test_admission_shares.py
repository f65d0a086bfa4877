"""Admission fair sharing in a whole cluster: teams take turns, and the LocalQueue says what it has used."""

from __future__ import annotations

from tests.jobs.live.world import cluster_queue, flavor, job, living, local_queue

SHARING = {"admissionFairSharing": {"usageHalfLifeTime": "100s", "usageSamplingInterval": "10s"}}
MODE = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}


async def test_teams_take_turns_and_a_new_leader_remembers() -> None:
    async with living(configuration=SHARING) as cluster:
        cluster.create(flavor("std"), cluster_queue(flavors={"std": 1}, **MODE), local_queue("a"), local_queue("b"))
        cluster.create(job("a1", queue="a", seconds=50))
        await cluster.run(5)
        cluster.create(job("a2", queue="a"))
        await cluster.run(15)
        used = cluster.get("LocalQueue", "a")["status"]["fairSharing"]["admissionFairSharingStatus"]
        assert set(used["consumedResources"]) == {"cpu"} and used["lastUpdate"]
        async with cluster.restarted():
            cluster.create(job("b1", queue="b"))
            await cluster.run(50)
            assert not cluster.is_suspended("b1") and cluster.is_suspended("a2"), "it has used less"
