"""Blocks of the configuration besides readiness: each does what it says, in a whole cluster."""

from __future__ import annotations

from typing import Any

from tests.jobs.live.world import (
    QueueingWorld,
    by_quota_alone,
    cluster_queue,
    flavor,
    job,
    living,
    local_queue,
    node,
    queue,
)

GPU, MIG, MEMORY = "example.com/gpu", "example.com/mig", "example.com/gpu-memory"
NEVER_REQUEUED = {"timeout": "5s", "requeuingStrategy": {"backoffLimitCount": 0}}


def retained(**workloads: str) -> dict[str, Any]:
    return {"waitForPodsReady": NEVER_REQUEUED, "objectRetentionPolicies": {"workloads": workloads}}


def usage(cluster: QueueingWorld, owner: str) -> dict[str, str]:
    [one] = cluster.workload(owner)["status"]["admission"]["podSetAssignments"]
    return dict(one["resourceUsage"])


# --- resources --------------------------------------------------------------------------------------------------------


async def test_a_resource_that_does_not_count_needs_no_quota() -> None:
    async with living(configuration={"resources": {"excludeResourcePrefixes": ["example.com/"]}}) as cluster:
        cluster.create(*by_quota_alone(*queue(cpu=2)), with_resources("train", {"cpu": "1", GPU: "4"}))
        await cluster.run(5)
        assert usage(cluster, "train") == {"cpu": "1"}


async def test_without_that_setting_it_is_rejected() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), with_resources("train", {"cpu": "1", GPU: "4"}))
        await cluster.run(5)
        assert cluster.condition("train", "QuotaReserved") == "False/NoMatchingFlavor"


async def test_a_resource_is_charged_as_another_one() -> None:
    rule = {"input": MIG, "strategy": "Replace", "outputs": {MEMORY: "5"}}
    async with living(configuration={"resources": {"transformations": [rule]}}) as cluster:
        quotas = [{"name": "cpu", "nominalQuota": 4}, {"name": MEMORY, "nominalQuota": 10}]
        group = {"coveredResources": ["cpu", MEMORY], "flavors": [{"name": "std", "resources": quotas}]}
        [queue_of_both] = by_quota_alone(cluster_queue())
        cluster.create(flavor("std"), {**queue_of_both, "spec": {"namespaceSelector": {}, "resourceGroups": [group]}})
        cluster.create(local_queue(), *(with_resources(name, {"cpu": "1", MIG: "1"}) for name in ("a", "b", "c")))
        await cluster.run(5)
        told = sorted(cluster.condition(name, "QuotaReserved") for name in ("a", "b", "c"))
        assert told == ["False/WaitingForQuota", "True/QuotaReserved", "True/QuotaReserved"], "not for want of cpu"
        admitted = [name for name in ("a", "b", "c") if not cluster.is_suspended(name)]
        assert [usage(cluster, name) for name in admitted] == [{"cpu": "1", MEMORY: "5"}] * 2


def with_resources(name: str, amounts: dict[str, str]) -> dict[str, Any]:
    made = job(name)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return made


# --- objectRetentionPolicies ------------------------------------------------------------------------------------------


async def test_a_finished_workload_is_deleted_after_its_time_and_its_job_stays() -> None:
    async with living(configuration=retained(afterFinished="1m")) as cluster:
        cluster.create(*queue(), job("train", seconds=5))
        await cluster.run(30)
        assert cluster.condition("train", "Finished") == "True/Succeeded"
        await cluster.run(60)
        assert cluster.objects("Workload") == [] and cluster.job("train")["status"]["succeeded"] == 1
        await cluster.run(120)
        assert cluster.objects("Workload") == [], "none is made for a job that has ended"


async def test_without_a_policy_a_finished_workload_stays() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("train", seconds=5))
        await cluster.run(100_000)
        assert cluster.condition("train", "Finished") == "True/Succeeded"


async def test_another_process_deletes_what_finished_before_it_began() -> None:
    async with living(configuration=retained(afterFinished="1m")) as cluster:
        cluster.create(*queue(), job("train", seconds=5))
        await cluster.run(30)
        async with cluster.restarted():
            await cluster.run(20)
            assert len(cluster.objects("Workload")) == 1
            await cluster.run(30)
            assert cluster.objects("Workload") == []


async def test_a_job_that_was_deactivated_by_queueing_is_deleted_after_its_time() -> None:
    async with living(configuration=retained(afterDeactivatedByKueue="1m")) as cluster:
        cluster.create(*queue(), job("never", is_ready=False))
        await cluster.run(30)
        assert cluster.condition("never", "Evicted") == "True/DeactivatedDueToRequeuingLimitExceeded"
        await cluster.run(60)
        assert cluster.find("Job", "never") is None and cluster.objects("Workload") == []


async def test_a_job_that_a_user_deactivated_stays() -> None:
    async with living(configuration=retained(afterDeactivatedByKueue="0s")) as cluster:
        cluster.create(*queue(), job("train"))
        await cluster.run(5)
        cluster.change("Workload", cluster.workload("train")["metadata"]["name"], {"spec": {"active": False}})
        await cluster.run(1000)
        assert cluster.is_suspended("train") and cluster.condition("train", "Evicted") == "True/Deactivated"


async def test_who_is_activated_again_in_time_stays() -> None:
    async with living(configuration=retained(afterDeactivatedByKueue="1m")) as cluster:
        cluster.create(*queue(), job("never", is_ready=False))
        await cluster.run(30)
        name = cluster.workload("never")["metadata"]["name"]
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "Hold"}})
        cluster.change("Workload", name, {"spec": {"active": True}})
        await cluster.run(1000)
        assert cluster.find("Job", "never") is not None


# --- jobs without a queue ---------------------------------------------------------------------------------------------


async def test_jobs_that_name_no_queue_are_queued_only_if_and_where_the_configuration_says_so() -> None:
    for configuration, is_managed in (
        ({}, False),
        ({"manageJobsWithoutQueueName": True}, True),
        (
            {
                "manageJobsWithoutQueueName": True,
                "managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}},
            },
            False,
        ),
    ):
        async with living(configuration=configuration) as cluster:
            cluster.create(job("train", queue=""))
            await cluster.run(5)
            assert cluster.is_suspended("train") is is_managed
            cluster.create(*queue()[:2], local_queue("default"))
            await cluster.run(5)
            assert not cluster.is_suspended("train")


async def test_labels_of_a_job_are_copied_to_its_workload() -> None:
    async with living(configuration={"integrations": {"labelKeysToCopy": ["team", "absent"]}}) as cluster:
        labelled = job("train")
        labelled["metadata"]["labels"] |= {"team": "vision", "other": "x"}
        cluster.create(*queue(), labelled)
        await cluster.run(5)
        labels = cluster.workload("train")["metadata"]["labels"]
        assert labels.pop("kueue.x-k8s.io/job-uid") and labels == {"team": "vision"}
        assert not cluster.is_suspended("train")


# --- fair sharing -----------------------------------------------------------------------------------------------------


async def test_the_strategies_of_fair_sharing_decide_who_may_be_preempted() -> None:
    """Two queues share eight cores that neither owns. With four of them the contender has less than the borrower has
    now, but more than what would be left to the borrower."""
    for strategies, is_preempted in (
        (["LessThanOrEqualToFinalShare"], False),
        (["LessThanInitialShare"], True),
        ([], True),
    ):
        configuration = {"fairSharing": {"preemptionStrategies": strategies}}
        async with living(nodes=[node("one"), node("two")], configuration=configuration) as cluster:
            none = {"nominalQuota": 0}
            policy = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
            cluster.create(
                flavor("std"),
                cluster_queue("a", {"std": none}, cohortName="ring", preemption=policy),
                cluster_queue("b", {"std": none}, cohortName="ring", preemption=policy),
                cluster_queue("pool", {"std": {"nominalQuota": 8}}, cohortName="ring"),
                local_queue("a", "a"),
                local_queue("b", "b"),
            )
            cluster.create(job("borrower", cpu=5, queue="a"))
            await cluster.run(5)
            cluster.create(job("contender", cpu=4, queue="b"))
            await cluster.run(10)
            told = cluster.condition("borrower", "Preempted")
            assert (told != "") is is_preempted, (strategies, told)
