"""Jobs in a whole cluster: suspended until admitted, on the nodes of their flavor, restored when they are evicted."""

from __future__ import annotations

import pytest

from pilotage.jobs.adapters import marks
from tests.jobs.live.world import cluster_queue, flavor, job, living, local_queue, node, priority_class, queue


async def test_a_job_waits_for_quota_and_runs_on_the_nodes_of_its_flavor() -> None:
    nodes = [node("small", pool="cheap"), node("large", pool="dear")]
    async with living(nodes=nodes) as cluster:
        cluster.create(flavor("cheap", pool="cheap"), cluster_queue(flavors={"cheap": 4}), local_queue())
        cluster.create(job("first", cpu=2, parallelism=2, seconds=60))
        await cluster.run(2)
        cluster.create(job("second", cpu=1))
        await cluster.run(10)
        assert not cluster.is_suspended("first") and cluster.is_suspended("second")
        assert cluster.job("first")["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "cheap"}
        assert {pod["spec"]["nodeName"] for pod in cluster.pods("first")} == {"small"}
        assert not cluster.pods("second")
        assert cluster.condition("second", "QuotaReserved") == "False/WaitingForQuota"
        assert cluster.condition("first", "PodsReady") == "True/Started"
        await cluster.run(90)
        assert cluster.condition("first", "Finished") == "True/Succeeded"
        assert not cluster.is_suspended("second")
        status = cluster.get("ClusterQueue", "cq")["status"]
        assert (status["pendingWorkloads"], status["admittedWorkloads"]) == (0, 1)
        usage = {"name": "cheap", "resources": [{"name": "cpu", "total": "1", "borrowed": "0"}]}
        assert status["flavorsUsage"] == [usage]


async def test_a_job_without_a_queue_is_left_alone() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("free", queue=""))
        await cluster.run(10)
        assert not cluster.is_suspended("free") and cluster.pods("free")
        assert cluster.objects("Workload") == []


async def test_events_have_kueues_names() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("train", seconds=20))
        await cluster.run(60)
        assert cluster.events("train")[:3] == ["Suspended", "CreatedWorkload", "Started"]
        assert "FinishedWorkload" in cluster.events("train")
        name = cluster.workload("train")["metadata"]["name"]
        assert cluster.events(name)[:2] == ["QuotaReserved", "Admitted"]


async def test_a_preempted_job_is_suspended_restored_and_runs_again_later() -> None:
    async with living() as cluster:
        cluster.create(priority_class("high", 100))
        cluster.create(flavor("std", pool="x"), local_queue())
        cluster.create(cluster_queue(preemption={"withinClusterQueue": "LowerPriority"}))
        for name in ("node-00001", "node-00002"):
            cluster.change("Node", name, {"metadata": {"labels": {"pool": "x"}}})
        cluster.create(job("low", cpu=4, nodeSelector={"kubernetes.io/os": "linux"}))
        original = cluster.job("low")["spec"]["template"]
        await cluster.run(10)
        steered = cluster.job("low")["spec"]["template"]
        assert steered["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "x"}
        assert steered["metadata"]["labels"][marks.POD_SET] == "main"
        cluster.create(job("high", cpu=4, priority="high", seconds=60))
        await cluster.run(10)
        assert cluster.is_suspended("low") and not cluster.is_suspended("high")
        assert cluster.job("low")["spec"]["template"] == original
        assert not cluster.pods("low")
        assert cluster.condition("low", "Requeued") == "True/Preempted"
        assert "Stopped" in cluster.events("low")
        await cluster.run(90)
        assert cluster.condition("high", "Finished") == "True/Succeeded"
        assert not cluster.is_suspended("low")
        assert cluster.job("low")["spec"]["template"] == steered


async def test_partial_admission_changes_the_size_and_stopping_restores_it() -> None:
    async with living() as cluster:
        annotations = {marks.MIN_PARALLELISM: "1"}
        cluster.create(*queue(cpu=3), job("wide", parallelism=5, completions=10, annotations=annotations))
        await cluster.run(10)
        assert cluster.job("wide")["spec"]["parallelism"] == 3
        assert len(cluster.pods("wide")) == 3
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.run(10)
        assert cluster.is_suspended("wide") and cluster.job("wide")["spec"]["parallelism"] == 5
        assert cluster.condition("wide", "Evicted") == "True/ClusterQueueStopped"


async def test_a_job_that_is_changed_while_it_waits_is_queued_as_it_is_now() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("holder", cpu=2))
        await cluster.run(2)
        cluster.create(job("changing", cpu=1, parallelism=3))
        await cluster.run(10)
        cluster.change("Job", "changing", {"spec": {"parallelism": 2}})
        await cluster.run(5)
        assert cluster.workload("changing")["spec"]["podSets"][0]["count"] == 2
        assert "UpdatedWorkload" in cluster.events("changing")


async def test_a_running_job_that_is_resized_is_queued_again() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), job("grows", parallelism=2, completions=8))
        await cluster.run(10)
        before = cluster.workload("grows")["metadata"]["uid"]
        cluster.change("Job", "grows", {"spec": {"parallelism": 4}})
        await cluster.run(20)
        assert cluster.workload("grows")["metadata"]["uid"] != before
        assert not cluster.is_suspended("grows") and len(cluster.pods("grows")) == 4


@pytest.mark.parametrize(("propagation", "left"), [("Background", 1), ("Foreground", 1), ("Orphan", 2)])
async def test_deleting_the_job_frees_the_quota(propagation: str, left: int) -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("holder", cpu=2))
        await cluster.run(2)
        cluster.create(job("waiting", cpu=2))
        await cluster.run(10)
        assert cluster.is_suspended("waiting")
        cluster.delete("Job", "holder", propagation)
        await cluster.run(10)
        assert not cluster.is_suspended("waiting")
        assert len(cluster.objects("Workload")) == left


async def test_deleting_the_workload_stops_and_restores_the_job_which_is_queued_anew() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("train", cpu=2))
        await cluster.run(10)
        first = cluster.workload("train")["metadata"]
        cluster.delete("Workload", first["name"])
        await cluster.run(20)
        assert cluster.workload("train")["metadata"]["uid"] != first["uid"]
        assert not cluster.is_suspended("train")
        assert cluster.events("train").count("Stopped") == 1


async def test_a_deactivated_workload_stops_its_job_until_it_is_active_again() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("train"))
        await cluster.run(10)
        name = cluster.workload("train")["metadata"]["name"]
        cluster.change("Workload", name, {"spec": {"active": False}})
        await cluster.run(10)
        assert cluster.is_suspended("train")
        assert cluster.condition("train", "Evicted") == "True/Deactivated"
        cluster.change("Workload", name, {"spec": {"active": True}})
        await cluster.run(10)
        assert not cluster.is_suspended("train")
