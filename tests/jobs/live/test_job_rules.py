"""Rules for Jobs that users meet while things change: priority, queue, owners, the default queue."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.adapters import marks
from tests.jobs.live.world import QueueingWorld, cluster_queue, flavor, job, living, local_queue, priority_class, queue


def owned(child: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": parent["metadata"]["name"]}
    child["metadata"]["ownerReferences"] = [{**reference, "uid": parent["metadata"]["uid"], "controller": True}]
    return child


def label(cluster: QueueingWorld, name: str, key: str) -> str | None:
    found: str | None = (cluster.job(name)["metadata"].get("labels") or {}).get(key)
    return found


async def test_another_priority_class_is_followed_while_waiting_and_while_running() -> None:
    async with living() as cluster:
        cluster.create(priority_class("high", 100), priority_class("low", 1), flavor("std"), local_queue())
        cluster.create(cluster_queue(preemption={"withinClusterQueue": "LowerPriority"}))
        cluster.create(job("runs", cpu=4, priority="high"))
        await cluster.run(2)
        cluster.create(job("waits", cpu=4))
        await cluster.run(5)
        cluster.change("Job", "waits", {"metadata": {"labels": {marks.PRIORITY_CLASS: "low"}}})
        await cluster.run(5)
        spec = cluster.workload("waits")["spec"]
        assert (spec["priority"], spec["priorityClassRef"]["name"]) == (1, "low")
        assert cluster.is_suspended("waits") and not cluster.is_suspended("runs")
        cluster.change("Job", "runs", {"metadata": {"labels": {marks.PRIORITY_CLASS: None}}})
        await cluster.run(10)
        assert cluster.workload("runs")["spec"]["priority"] == 0
        assert cluster.is_suspended("runs") and not cluster.is_suspended("waits"), "it may be preempted now"


async def test_an_unknown_priority_class_is_reported_and_changes_nothing() -> None:
    async with living() as cluster:
        cluster.create(priority_class("high", 100), *queue(), job("runs", priority="high"))
        await cluster.run(5)
        cluster.change("Job", "runs", {"metadata": {"labels": {marks.PRIORITY_CLASS: "hihg"}}})
        await cluster.run(5)
        assert cluster.workload("runs")["spec"]["priority"] == 100
        assert "WorkloadPriorityClassNotFound" in cluster.events("runs")


async def test_another_value_of_a_priority_class_is_followed_while_waiting_and_while_running() -> None:
    async with living() as cluster:
        cluster.create(priority_class("high", 100), *queue(cpu=1), job("runs", priority="high"))
        await cluster.run(5)
        cluster.create(job("waits", priority="high"), job("other"))
        await cluster.run(5)
        cluster.change("WorkloadPriorityClass", "high", {"value": -5})
        await cluster.run(5)
        assert [cluster.workload(name)["spec"]["priority"] for name in ("runs", "waits")] == [-5, -5]
        assert [one.key.split("-")[1] for one in cluster.engine.pending("cq")] == ["other", "waits"]


async def test_the_priority_class_called_default_is_for_those_that_name_none() -> None:
    async with living() as cluster:
        cluster.create(priority_class("high", 100), *queue(), job("first"), job("named", priority="high"))
        await cluster.run(5)
        assert cluster.workload("first")["spec"]["priority"] == 0
        cluster.create(priority_class("default", 7), job("second"))
        await cluster.run(5)
        found = {name: cluster.workload(name)["spec"]["priority"] for name in ("first", "second", "named")}
        assert found == {"first": 7, "second": 7, "named": 100}
        assert cluster.workload("second")["spec"]["priorityClassRef"]["name"] == "default"
        cluster.delete("WorkloadPriorityClass", "default")
        await cluster.run(5)
        assert cluster.workload("first")["spec"]["priority"] == 0


async def test_the_priority_class_called_default_can_be_switched_off() -> None:
    gates = {"featureGates": {"WorkloadPriorityClassDefaulting": False}}
    async with living(configuration=gates) as cluster:
        cluster.create(priority_class("default", 7), *queue(), job("first"))
        await cluster.run(5)
        assert cluster.workload("first")["spec"]["priority"] == 0


@pytest.mark.parametrize(
    ("label", "least", "said"),
    [("lq", "9", "from 1 to 2"), ("lq", "two", "from 1 to 2"), ("No_Name", "", "cannot be the name of a LocalQueue")],
)
async def test_a_job_of_which_no_workload_can_be_made_says_why(label: str, least: str, said: str) -> None:
    noted = {"kueue.x-k8s.io/job-min-parallelism": least} if least else {}
    async with living() as cluster:
        cluster.create(*queue(), job("odd", queue=label, parallelism=2, annotations=noted))
        await cluster.run(30)
        assert cluster.is_suspended("odd") and cluster.objects("Workload") == []
        [event] = [one for one in cluster.objects("Event") if one["reason"] == "ErrWorkloadCompose"]
        assert event["type"] == "Warning" and event["involvedObject"]["name"] == "odd" and said in event["message"]


async def test_the_queue_of_a_waiting_job_can_be_changed_but_not_of_a_running_one() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), cluster_queue("second", flavors={"std": 1}), local_queue("other", "second"))
        cluster.create(job("runs", cpu=2))
        await cluster.run(2)
        cluster.create(job("waits", cpu=1))
        await cluster.run(5)
        assert cluster.is_suspended("waits")
        for name in ("runs", "waits"):
            cluster.change("Job", name, {"metadata": {"labels": {marks.QUEUE_NAME: "other"}}})
        await cluster.run(5)
        assert not cluster.is_suspended("waits") and cluster.workload("waits")["spec"]["queueName"] == "other"
        assert label(cluster, "runs", marks.QUEUE_NAME) == "lq"
        assert "QueueNameRestored" in cluster.events("runs") and not cluster.is_suspended("runs")


async def test_a_running_job_does_not_get_away_by_losing_its_label() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("runs", cpu=2))
        await cluster.run(5)
        cluster.change("Job", "runs", {"metadata": {"labels": {marks.QUEUE_NAME: None}}})
        await cluster.run(5)
        cluster.create(job("waits", cpu=1))
        await cluster.run(5)
        assert label(cluster, "runs", marks.QUEUE_NAME) == "lq"
        assert cluster.is_suspended("waits"), "its quota is still booked"


async def test_a_waiting_job_that_loses_its_label_leaves_the_queue() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=1), job("waits", cpu=2))
        await cluster.run(5)
        assert len(cluster.objects("Workload")) == 1
        cluster.change("Job", "waits", {"metadata": {"labels": {marks.QUEUE_NAME: None}}})
        await cluster.run(5)
        assert cluster.objects("Workload") == []


async def test_a_queue_called_default_takes_jobs_that_come_after_it() -> None:
    async with living() as cluster:
        cluster.create(job("before", queue=""))
        await cluster.run(5)
        cluster.create(flavor("std"), cluster_queue(flavors={"std": 1}), local_queue("default"))
        await cluster.run(5)
        cluster.create(job("fits", queue=""))
        await cluster.run(2)
        cluster.create(job("waits", queue=""))
        await cluster.run(5)
        assert label(cluster, "before", marks.QUEUE_NAME) is None and not cluster.is_suspended("before")
        assert label(cluster, "fits", marks.QUEUE_NAME) == "default" and not cluster.is_suspended("fits")
        assert cluster.is_suspended("waits")
        assert cluster.workload("waits")["spec"]["queueName"] == "default"
        assert "QueueNameDefaulted" in cluster.events("fits")


async def test_defaulting_can_be_switched_off() -> None:
    async with living(configuration={"featureGates": {"LocalQueueDefaulting": False}}) as cluster:
        cluster.create(flavor("std"), cluster_queue(), local_queue("default"))
        await cluster.run(2)
        cluster.create(job("free", queue=""))
        await cluster.run(5)
        assert not cluster.is_suspended("free") and cluster.objects("Workload") == []


async def test_jobs_without_a_queue_are_managed_where_the_administrator_wants_it() -> None:
    configuration = {
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchLabels": {"queued": "yes"}},
    }
    async with living(configuration=configuration) as cluster:
        cluster.create(job("free", queue=""))
        await cluster.run(5)
        assert not cluster.is_suspended("free")
        cluster.change("Namespace", "default", {"metadata": {"labels": {"queued": "yes"}}})
        await cluster.run(5)
        assert cluster.is_suspended("free") and cluster.condition("free", "QuotaReserved") == "False/Misconfigured"


async def test_the_children_of_a_queued_job_run_when_it_does() -> None:
    async with living() as cluster:
        cluster.create(priority_class("high", 100), flavor("std"), local_queue())
        cluster.create(cluster_queue(preemption={"withinClusterQueue": "LowerPriority"}))
        cluster.create(job("parent", cpu=4))
        await cluster.run(5)
        cluster.create(owned(job("child", cpu=1), cluster.job("parent")))
        await cluster.run(3)
        cluster.create(owned(job("grandchild", cpu=1, queue=""), cluster.job("child")))
        await cluster.run(5)
        assert len(cluster.objects("Workload")) == 1, "children are not queued themselves"
        assert not cluster.is_suspended("child") and not cluster.is_suspended("grandchild")
        cluster.create(job("vip", cpu=4, priority="high", seconds=60))
        await cluster.run(10)
        assert all(cluster.is_suspended(name) for name in ("parent", "child", "grandchild"))
        assert "Suspended" in cluster.events("child")
        await cluster.run(90)
        assert not any(cluster.is_suspended(name) for name in ("parent", "child", "grandchild"))
        assert marks.HELD not in (cluster.job("child")["metadata"].get("annotations") or {})


async def test_a_child_that_its_user_suspended_stays_suspended() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), job("parent", cpu=1))
        await cluster.run(5)
        cluster.create(owned(job("child", cpu=1, suspend=True), cluster.job("parent")))
        await cluster.run(10)
        assert cluster.is_suspended("child") and len(cluster.objects("Workload")) == 1


async def test_pods_of_a_queued_job_that_carry_the_gate_are_let_go_with_it() -> None:
    """Their template names the queue and the gate: they must not be queued a second time."""
    async with living() as cluster:
        twice = job("twice", cpu=1, schedulingGates=[{"name": marks.GATE}])
        twice["spec"]["template"]["metadata"]["labels"][marks.QUEUE_NAME] = "lq"
        cluster.create(*queue(cpu=4), twice)
        await cluster.run(10)
        assert len(cluster.objects("Workload")) == 1
        assert [bool(pod["spec"].get("nodeName")) for pod in cluster.pods("twice")] == [True]


async def test_completions_follow_parallelism_if_that_is_wanted() -> None:
    async with living() as cluster:
        annotations = {marks.MIN_PARALLELISM: "1", marks.COMPLETIONS_EQUAL_PARALLELISM: "true"}
        wide = job("wide", parallelism=5, annotations=annotations)
        wide["spec"]["completionMode"] = "Indexed"
        cluster.create(*queue(cpu=3), wide)
        await cluster.run(10)
        spec = cluster.job("wide")["spec"]
        assert (spec["parallelism"], spec["completions"]) == (3, 3)
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.run(10)
        spec = cluster.job("wide")["spec"]
        assert (spec["suspend"], spec["parallelism"], spec["completions"]) == (True, 5, 5)


async def test_pods_that_are_not_needed_any_more_give_their_quota_back_also_after_an_eviction() -> None:
    async with living() as cluster:
        several = job("several", cpu=1, parallelism=3, completions=4, seconds=100_000)
        cluster.create(*queue(cpu=3), several)
        await cluster.run(10)
        for pod in cluster.pods("several")[:2]:
            cluster.change_status("Pod", pod["metadata"]["name"], {"phase": "Succeeded"})
        await cluster.run(10)
        assert cluster.job("several")["status"]["succeeded"] == 2
        assert cluster.workload("several")["status"]["reclaimablePods"] == [{"name": "main", "count": 1}]
        cluster.create(job("next", cpu=1))
        await cluster.run(5)
        assert not cluster.is_suspended("next")
        uid = cluster.workload("several")["metadata"]["uid"]
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.run(10)
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "None"}})
        await cluster.run(10)
        assert not cluster.is_suspended("several") and not cluster.is_suspended("next")
        assert cluster.workload("several")["metadata"]["uid"] == uid, "it is the same workload, with two pods left"


async def test_the_execution_limit_of_a_waiting_job_follows_its_label() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=1), job("holder", cpu=1))
        await cluster.run(2)
        cluster.create(job("waits", cpu=1))
        await cluster.run(3)
        cluster.change("Job", "waits", {"metadata": {"labels": {marks.MAX_EXECUTION_SECONDS: "30"}}})
        await cluster.run(3)
        assert cluster.workload("waits")["spec"]["maximumExecutionTimeSeconds"] == 30
