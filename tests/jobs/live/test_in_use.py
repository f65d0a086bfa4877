"""Queues, flavors and checks that are deleted stay until nobody needs them."""

from __future__ import annotations

from tests.jobs.live.world import KUEUE, QueueingWorld, cluster_queue, flavor, job, living, local_queue, queue

IN_USE = "kueue.x-k8s.io/resource-in-use"


def reason(cluster: QueueingWorld, kind: str, name: str) -> str:
    [active] = cluster.get(kind, name)["status"]["conditions"]
    return f"{active['status']}/{active['reason']}"


async def test_a_deleted_cluster_queue_is_terminating_until_its_last_workload_is_done() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("first", seconds=30), job("second", seconds=60))
        await cluster.run(5)
        assert cluster.get("ClusterQueue", "cq")["metadata"]["finalizers"] == [IN_USE]
        cluster.delete("ClusterQueue", "cq")
        cluster.create(job("late"))
        await cluster.run(30)
        assert reason(cluster, "ClusterQueue", "cq") == "False/Terminating"
        assert reason(cluster, "LocalQueue", "lq") == "False/ClusterQueueIsInactive"
        assert not cluster.is_suspended("second"), "what runs goes on"
        assert cluster.is_suspended("late") and cluster.condition("late", "QuotaReserved") == "False/Suspended"
        assert cluster.get("ClusterQueue", "cq")["status"]["reservingWorkloads"] == 1
        await cluster.run(40)
        assert cluster.find("ClusterQueue", "cq") is None
        assert reason(cluster, "LocalQueue", "lq") == "False/ClusterQueueDoesNotExist"
        assert cluster.condition("late", "QuotaReserved") == "False/Misconfigured"
        cluster.create(cluster_queue())
        await cluster.run(5)
        assert not cluster.is_suspended("late"), "nothing is lost"


async def test_an_unused_cluster_queue_goes_at_once() -> None:
    async with living() as cluster:
        cluster.create(*queue())
        await cluster.run(5)
        cluster.delete("ClusterQueue", "cq")
        await cluster.run(2)
        assert cluster.find("ClusterQueue", "cq") is None


async def test_a_deleted_flavor_stays_until_no_queue_names_it() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), cluster_queue("other", {"std": 1}))
        await cluster.run(5)
        cluster.delete("ResourceFlavor", "std")
        cluster.create(job("train", seconds=1000))
        await cluster.run(5)
        assert cluster.find("ResourceFlavor", "std") is not None and not cluster.is_suspended("train")
        cluster.delete("ClusterQueue", "other")
        await cluster.run(5)
        assert cluster.find("ResourceFlavor", "std") is not None
        groups = cluster_queue(flavors={"new": 2})["spec"]["resourceGroups"]
        cluster.change("ClusterQueue", "cq", {"spec": {"resourceGroups": groups}})
        await cluster.run(5)
        assert cluster.find("ResourceFlavor", "std") is None
        assert reason(cluster, "ClusterQueue", "cq") == "False/FlavorNotFound"


async def test_a_deleted_check_stays_until_no_queue_names_it() -> None:
    check = {
        "apiVersion": KUEUE,
        "kind": "AdmissionCheck",
        "metadata": {"name": "c"},
        "spec": {"controllerName": "x/y"},
    }
    async with living() as cluster:
        strategy = {"admissionChecks": [{"name": "c"}]}
        cluster.create(flavor("std"), check, cluster_queue(admissionChecksStrategy=strategy), local_queue())
        await cluster.run(5)
        cluster.delete("AdmissionCheck", "c")
        await cluster.run(5)
        assert cluster.find("AdmissionCheck", "c") is not None
        cluster.change("ClusterQueue", "cq", {"spec": {"admissionChecksStrategy": None}})
        await cluster.run(5)
        assert cluster.find("AdmissionCheck", "c") is None


async def test_another_process_lets_go_what_was_deleted_before_it_began() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("train", seconds=20))
        await cluster.run(5)
        cluster.delete("ClusterQueue", "cq")
        await cluster.run(1)
        async with cluster.restarted():
            await cluster.run(5)
            assert reason(cluster, "ClusterQueue", "cq") == "False/Terminating"
            await cluster.run(30)
            assert cluster.find("ClusterQueue", "cq") is None
