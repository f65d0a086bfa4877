"""KEP-1282 end to end: pods that do not become ready, in a cluster with kubelets and the real scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.pods_ready import TIMEOUT_ANNOTATION
from tests.jobs.live.world import (
    by_quota_alone,
    cluster_queue,
    flavor,
    job,
    living,
    local_queue,
    node,
    priority_class,
    queue,
)


def waiting(seconds: int, timestamp: str = "Eviction", base: int = 10, **more: Any) -> dict[str, Any]:
    strategy = {"timestamp": timestamp, "backoffBaseSeconds": base, **more}
    return {"waitForPodsReady": {"timeout": f"{seconds}s", "requeuingStrategy": strategy}}


async def test_user_story_1_a_stock_out_on_flavor_2_and_capacity_that_is_freed_on_flavor_1() -> None:
    """The workload is admitted on flavor 2, of which there are no machines; it ends on flavor 1 when that is free."""
    async with living(nodes=[node("only", pool="one")], configuration=waiting(60, "Creation")) as cluster:
        cluster.create(flavor("one", pool="one"), flavor("two", pool="two"), local_queue())
        cluster.create(*by_quota_alone(cluster_queue(flavors={"one": 4, "two": 4})))
        cluster.create(job("holder", cpu=4, seconds=50))
        await cluster.run(5)
        cluster.create(job("unlucky", cpu=4))
        await cluster.run(5)
        assert cluster.flavors("holder") == {"cpu": "one"} and cluster.flavors("unlucky") == {"cpu": "two"}
        [pod] = cluster.pods("unlucky")
        assert not pod["spec"].get("nodeName"), "there is no machine of flavor two"
        await cluster.run(55)
        assert cluster.condition("holder", "Finished") == "True/Succeeded"
        assert cluster.condition("unlucky", "Evicted") == "True/PodsReadyTimeout"
        assert cluster.is_suspended("unlucky")
        assert cluster.workload("unlucky")["status"]["requeueState"]["count"] == 1
        assert "nodeSelector" not in cluster.job("unlucky")["spec"]["template"]["spec"]
        await cluster.run(15)
        assert cluster.flavors("unlucky") == {"cpu": "one"}
        [pod] = cluster.pods("unlucky")
        assert pod["spec"]["nodeName"] == "only"
        await cluster.run(10)
        assert cluster.condition("unlucky", "PodsReady") == "True/Started"
        name = cluster.workload("unlucky")["metadata"]["name"]
        assert "EvictedDueToPodsReadyTimeout" in cluster.events(name)


async def test_flapping_a_preempted_workload_is_not_readmitted_before_its_preemptor_with_creation() -> None:
    async with living(configuration=waiting(600, "Creation")) as cluster:
        cluster.create(priority_class("high", 100), flavor("std"), local_queue())
        cluster.create(cluster_queue(preemption={"withinClusterQueue": "LowerPriority"}))
        cluster.create(job("older", cpu=4))
        await cluster.run(20)
        cluster.create(job("preemptor", cpu=4, priority="high"))
        await cluster.run(60)
        assert not cluster.is_suspended("preemptor") and cluster.is_suspended("older")
        victim = cluster.workload("older")["metadata"]["name"]
        winner = cluster.workload("preemptor")["metadata"]["name"]
        assert cluster.events(victim).count("QuotaReserved") == 1, "it was not readmitted in between"
        assert cluster.events(victim).count("Preempted") == 1
        assert cluster.events(winner).count("QuotaReserved") == 1
        assert cluster.condition("older", "Evicted") == "True/Preempted"
        assert not cluster.workload("older")["status"].get("requeueState"), "preemption counts for nothing"


@pytest.mark.parametrize(("timestamp", "next_one"), [("Eviction", "third"), ("Creation", "first")])
async def test_where_a_timed_out_workload_stands_in_the_queue_is_the_administrators_choice(
    timestamp: str, next_one: str
) -> None:
    """Nobody becomes ready. The second takes the place of the first; who follows the second?"""
    async with living(configuration=waiting(30, timestamp, base=5)) as cluster:
        cluster.create(*queue(cpu=2))
        for name in ("first", "second", "third"):
            cluster.create(job(name, cpu=2, is_ready=False))
            await cluster.run(3)
        await cluster.run(30)
        assert [name for name in ("first", "second", "third") if not cluster.is_suspended(name)] == ["second"]
        await cluster.run(30)
        assert [name for name in ("first", "second", "third") if not cluster.is_suspended(name)] == [next_one]


async def test_the_limit_deactivates_and_the_user_may_reactivate() -> None:
    async with living(configuration=waiting(30, backoffLimitCount=1)) as cluster:
        cluster.create(*queue(), job("never", is_ready=False))
        await cluster.run(35)
        assert cluster.workload("never")["status"]["requeueState"]["count"] == 1
        await cluster.run(60)
        assert cluster.workload("never")["spec"]["active"] is False
        assert cluster.condition("never", "Evicted") == "True/DeactivatedDueToRequeuingLimitExceeded"
        assert cluster.is_suspended("never") and not cluster.pods("never")
        cluster.change("Workload", cluster.workload("never")["metadata"]["name"], {"spec": {"active": True}})
        await cluster.run(5)
        assert not cluster.is_suspended("never")


async def test_back_off_survives_a_restart() -> None:
    async with living(configuration=waiting(30, base=60)) as cluster:
        cluster.create(*queue(), job("never", is_ready=False))
        await cluster.run(40)
        assert cluster.is_suspended("never")
        before = cluster.workload("never")["status"]["requeueState"]
        async with cluster.restarted():
            await cluster.run(10)
            assert cluster.workload("never")["status"]["requeueState"] == before
            assert cluster.is_suspended("never")
            await cluster.run(45)
            assert not cluster.is_suspended("never"), "the back-off is over"


async def test_a_job_may_have_a_timeout_of_its_own() -> None:
    async with living(configuration=waiting(30, base=1000)) as cluster:
        slow = {TIMEOUT_ANNOTATION: "2m"}
        cluster.create(*queue(cpu=4), job("slow", is_ready=False, annotations=slow), job("usual", is_ready=False))
        await cluster.run(40)
        assert cluster.condition("usual", "Evicted") == "True/PodsReadyTimeout"
        assert cluster.condition("slow", "Evicted") == "" and not cluster.is_suspended("slow")
        await cluster.run(70)
        assert not cluster.is_suspended("slow")
        name = cluster.workload("slow")["metadata"]["name"]
        cluster.change("Workload", name, {"metadata": {"annotations": {TIMEOUT_ANNOTATION: "3m"}}})
        await cluster.run(40)
        assert not cluster.is_suspended("slow"), "it can be changed while it runs"
        await cluster.run(40)
        assert cluster.condition("slow", "Evicted") == "True/PodsReadyTimeout"
        evicted = next(one for one in cluster.workload("slow")["status"]["conditions"] if one["type"] == "Evicted")
        assert evicted["message"] == "Exceeded the PodsReady timeout of 180s"


async def test_a_timeout_that_is_none_is_reported() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("typo", annotations={TIMEOUT_ANNOTATION: "soon"}))
        await cluster.run(5)
        assert "ErrWorkloadCompose" in cluster.events("typo") and cluster.objects("Workload") == []
        cluster.change("Job", "typo", {"metadata": {"annotations": {TIMEOUT_ANNOTATION: "1m"}}})
        await cluster.run(5)
        assert not cluster.is_suspended("typo")
