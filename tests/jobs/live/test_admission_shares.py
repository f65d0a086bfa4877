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


async def test_an_entry_is_charged_once_however_often_it_gets_quota() -> None:
    slow = {"admissionFairSharing": {"usageHalfLifeTime": "10s", "usageSamplingInterval": "1000s"}}
    async with living(configuration=slow) as cluster:
        cluster.create(flavor("std"), cluster_queue(flavors={"std": 4}, **MODE), local_queue("a"))
        cluster.create(job("a1", cpu=2, queue="a"))
        await cluster.run(5)

        def used() -> str:
            sharing = cluster.engine.local_queue_status("default/a").fair_sharing
            assert sharing is not None and sharing.admission_fair_sharing_status is not None
            return str(sharing.admission_fair_sharing_status.consumed_resources["cpu"])

        charged = used()
        assert charged == "2"
        for _ in range(3):
            before = cluster.workload("a1")
            cluster.change_status("Workload", before["metadata"]["name"], {"admission": None})
            await cluster.run(10)
            assert cluster.condition("a1", "Admitted") == "True/Admitted"
            assert cluster.workload("a1")["status"]["schedulingStats"]["evictions"][0]["count"] >= 1
        assert used() == charged
        async with cluster.restarted():
            name = cluster.workload("a1")["metadata"]["name"]
            cluster.change_status("Workload", name, {"admission": None})
            await cluster.run(10)
            assert cluster.condition("a1", "Admitted") == "True/Admitted" and used() == charged
