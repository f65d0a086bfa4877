"""objectRetentionPolicies: what is finished goes, and what the system deactivated goes with its job."""

from __future__ import annotations

from typing import Any

from tests.jobs.live.test_pods import pod
from tests.jobs.live.world import job, living, queue


def policies(**workloads: str) -> dict[str, Any]:
    strategy = {"backoffLimitCount": 0}
    ready = {"timeout": "20s", "requeuingStrategy": strategy}
    return {"objectRetentionPolicies": {"workloads": workloads}, "waitForPodsReady": ready}


async def test_finished_workloads_are_deleted_after_their_time_and_not_made_again() -> None:
    async with living(configuration=policies(afterFinished="60s")) as cluster:
        cluster.create(*queue(), job("short", seconds=5), job("long", seconds=30))
        await cluster.run(50)
        assert cluster.condition("short", "Finished") == "True/Succeeded"
        assert len(cluster.objects("Workload")) == 2
        await cluster.run(25)
        assert [one["metadata"]["ownerReferences"][0]["name"] for one in cluster.objects("Workload")] == ["long"]
        await cluster.run(40)
        assert cluster.objects("Workload") == [] and cluster.find("Job", "short") is not None


async def test_jobs_that_the_system_deactivated_are_deleted_those_of_users_are_not() -> None:
    async with living(configuration=policies(afterDeactivatedByKueue="1m")) as cluster:
        cluster.create(*queue(), job("never-ready", is_ready=False), job("unwanted"))
        await cluster.run(10)
        name = cluster.workload("unwanted")["metadata"]["name"]
        cluster.change("Workload", name, {"spec": {"active": False}})
        await cluster.run(20)
        assert cluster.condition("never-ready", "Evicted") == "True/DeactivatedDueToRequeuingLimitExceeded"
        await cluster.run(40)
        assert cluster.find("Job", "never-ready") is not None
        await cluster.run(30)
        assert cluster.find("Job", "never-ready") is None
        assert [one["metadata"]["name"] for one in cluster.objects("Workload")] == [name]
        await cluster.run(100)
        assert cluster.find("Job", "unwanted") is not None


async def test_a_workload_that_is_activated_again_in_time_stays() -> None:
    async with living(configuration=policies(afterDeactivatedByKueue="30s")) as cluster:
        cluster.create(*queue(), job("never-ready", is_ready=False))
        await cluster.run(25)
        workload = cluster.workload("never-ready")
        assert workload["spec"]["active"] is False
        cluster.change("Workload", workload["metadata"]["name"], {"spec": {"active": True}})
        await cluster.run(15)
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.run(60)
        assert cluster.find("Job", "never-ready") is not None


async def test_a_new_leader_deletes_what_has_been_kept_long_enough() -> None:
    async with living(configuration=policies(afterFinished="60s")) as cluster:
        cluster.create(*queue(), job("short", seconds=5))
        await cluster.run(30)
        async with cluster.restarted():
            await cluster.run(60)
            assert cluster.objects("Workload") == []


async def test_nothing_is_deleted_unless_it_is_wanted() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("short", seconds=5), pod("alone", seconds=5))
        await cluster.run(100_000)
        assert len(cluster.objects("Workload")) == 2
