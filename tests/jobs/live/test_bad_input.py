"""Mistakes of users and administrators: each is named where people look, and nothing is admitted wrongly or lost."""

from __future__ import annotations

from tests.jobs.live.world import (
    KUEUE,
    QueueingWorld,
    cluster_queue,
    flavor,
    job,
    living,
    local_queue,
    priority_class,
    queue,
)


def active(cluster: QueueingWorld, kind: str, name: str) -> tuple[str, str]:
    """Reason and message of the condition Active."""
    [condition] = cluster.get(kind, name)["status"]["conditions"]
    return f"{condition['status']}/{condition['reason']}", condition["message"]


async def test_a_queue_that_names_a_missing_flavor_admits_once_the_flavor_is_there() -> None:
    async with living() as cluster:
        cluster.create(cluster_queue(flavors={"missing": 4}), local_queue(), job("train"))
        await cluster.run(5)
        reason, message = active(cluster, "ClusterQueue", "cq")
        assert reason == "False/FlavorNotFound" and "missing" in message
        assert active(cluster, "LocalQueue", "lq")[0] == "False/ClusterQueueIsInactive"
        assert cluster.condition("train", "QuotaReserved") == "False/Suspended"
        assert cluster.is_suspended("train")
        cluster.create(flavor("missing"))
        await cluster.run(5)
        assert active(cluster, "ClusterQueue", "cq")[0] == "True/Ready"
        assert not cluster.is_suspended("train")


async def test_cohorts_that_contain_each_other_admit_nothing_until_the_cycle_is_broken() -> None:
    async with living() as cluster:
        for name, parent in (("a", "b"), ("b", "a")):
            cohort = {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": parent}}
            cluster.create(cohort)
        cluster.create(*queue(cohortName="a"), job("train"))
        await cluster.run(5)
        reason, message = active(cluster, "ClusterQueue", "cq")
        assert reason == "False/CohortCycle" and "a -> b" in message
        assert cluster.is_suspended("train")
        cluster.change("Cohort", "b", {"spec": {"parentName": None}})
        await cluster.run(5)
        assert not cluster.is_suspended("train")


async def test_a_job_for_an_unknown_queue_says_so_and_runs_once_the_queue_is_there() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("train", queue="typo"))
        await cluster.run(5)
        assert cluster.condition("train", "QuotaReserved") == "False/Misconfigured"
        conditions = cluster.workload("train")["status"]["conditions"]
        assert any("typo" in condition["message"] for condition in conditions)
        cluster.change("Job", "train", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}})
        await cluster.run(5)
        assert not cluster.is_suspended("train"), "it followed the label to another queue"


async def test_quota_lowered_below_its_use_evicts_no_one_and_admits_no_one() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), job("big", cpu=4, seconds=60))
        await cluster.run(5)
        groups = cluster.get("ClusterQueue", "cq")["spec"]["resourceGroups"]
        groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = 2
        cluster.change("ClusterQueue", "cq", {"spec": {"resourceGroups": groups}})
        cluster.create(job("small", cpu=1))
        await cluster.run(5)
        assert not cluster.is_suspended("big") and cluster.is_suspended("small")
        assert "exceeds the quota" in active(cluster, "ClusterQueue", "cq")[1]
        await cluster.run(70)
        assert not cluster.is_suspended("small")


async def test_a_missing_priority_class_is_reported_once_and_waited_for() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("train", priority="high"))
        await cluster.run(30)
        assert cluster.objects("Workload") == [] and cluster.is_suspended("train")
        assert cluster.events("train").count("WorkloadPriorityClassNotFound") == 1
        cluster.create(priority_class("high", 7))
        await cluster.run(5)
        assert cluster.workload("train")["spec"]["priority"] == 7
        assert not cluster.is_suspended("train")


async def test_a_flavor_in_use_may_be_edited_without_stopping_anyone() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("train"))
        await cluster.run(5)
        cluster.change("ResourceFlavor", "std", {"spec": {"nodeLabels": {"pool": "new"}}})
        await cluster.run(5)
        assert not cluster.is_suspended("train") and cluster.events("train").count("Started") == 1


async def test_a_running_job_that_no_one_admitted_is_stopped() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=1), job("first"))
        await cluster.run(3)
        cluster.create(job("second"))
        await cluster.run(5)
        cluster.change("Job", "second", {"spec": {"suspend": False}})
        await cluster.run(5)
        assert cluster.is_suspended("second") and not cluster.pods("second")
        assert "Stopped" in cluster.events("second")
