"""LimitRanges and RuntimeClasses in a whole cluster: what is counted is what pods get, and nobody starts in vain."""

from __future__ import annotations

from typing import Any

from tests.jobs.live.world import Json, QueueingWorld, job, living, queue


def limit_range(name: str = "bounds", **container: Any) -> Json:
    spec = {"limits": [{"type": "Container", **container}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": spec}


def runtime_class(name: str, cpu: str) -> Json:
    overhead = {"podFixed": {"cpu": cpu}}
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}}
    return {**head, "handler": "box", "overhead": overhead}


def bare_job(name: str, parallelism: int = 1, **pod: Any) -> Json:
    """Its container says nothing about resources."""
    made = job(name, parallelism=parallelism, **pod)
    del made["spec"]["template"]["spec"]["containers"][0]["resources"]
    return made


def used(cluster: QueueingWorld) -> str:
    [flavor] = cluster.get("ClusterQueue", "cq")["status"]["flavorsReservation"]
    return str(flavor["resources"][0]["total"])


def why(cluster: QueueingWorld, owner: str) -> str:
    conditions = cluster.workload(owner)["status"]["conditions"]
    return next(str(one["message"]) for one in conditions if one["type"] == "QuotaReserved")


async def test_defaults_are_counted_and_are_what_the_pods_get_and_the_job_stays_as_it_is() -> None:
    async with living() as cluster:
        defaults = limit_range(default={"cpu": "1500m"}, defaultRequest={"cpu": "750m"})
        cluster.create(*queue(cpu=2), defaults, bare_job("train", parallelism=2))
        await cluster.run(5)
        cluster.create(bare_job("later"))
        await cluster.run(5)
        assert used(cluster) == "1500m" and cluster.condition("later", "QuotaReserved") == "False/WaitingForQuota"
        requested = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in cluster.pods("train")]
        assert requested == [{"cpu": "750m"}, {"cpu": "750m"}]
        assert not cluster.job("train")["spec"]["template"]["spec"]["containers"][0].get("resources")


async def test_a_job_against_the_limits_is_not_started_until_the_limits_allow_it() -> None:
    async with living() as cluster:
        cluster.create(*queue(), limit_range(max={"cpu": "1"}), job("wide", cpu=2), job("fine", cpu=1))
        await cluster.run(10)
        assert cluster.condition("wide", "QuotaReserved") == "False/Misconfigured"
        assert "maximum cpu usage per Container is 1, but request is 2 (container main, LimitRange bounds)" in why(
            cluster, "wide"
        )
        assert cluster.is_suspended("wide") and not cluster.is_suspended("fine") and used(cluster) == "1"
        limits = [{"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "2"}}]
        cluster.change("LimitRange", "bounds", {"spec": {"limits": limits}})
        await cluster.run(10)
        assert not cluster.is_suspended("wide") and len(cluster.pods("wide")) == 1 and used(cluster) == "3"


async def test_who_runs_is_left_alone_by_a_new_limit_range_and_a_deleted_one_frees_who_waits() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("first", cpu=2))
        await cluster.run(5)
        cluster.create(limit_range(max={"cpu": "1"}), job("second", cpu=2))
        await cluster.run(10)
        assert not cluster.is_suspended("first") and cluster.events("first").count("Stopped") == 0
        assert cluster.condition("second", "QuotaReserved") == "False/Misconfigured"
        cluster.delete("LimitRange", "bounds")
        await cluster.run(10)
        assert not cluster.is_suspended("second")


async def test_the_overhead_of_a_runtime_class_is_counted_and_a_missing_class_waited_for() -> None:
    async with living() as cluster:
        cluster.create(*queue(), job("boxed", cpu=1, parallelism=2, runtimeClassName="kata"))
        await cluster.run(10)
        assert why(cluster, "boxed") == "pod set main: RuntimeClass kata doesn't exist"
        assert cluster.workload("boxed")["spec"]["podSets"][0]["template"]["spec"]["runtimeClassName"] == "kata"
        cluster.create(runtime_class("kata", "500m"))
        await cluster.run(10)
        assert used(cluster) == "3" and len(cluster.pods("boxed")) == 2
        assert [pod["spec"]["overhead"] for pod in cluster.pods("boxed")] == [{"cpu": "500m"}] * 2


async def test_who_takes_over_judges_by_the_same_limits() -> None:
    async with living() as cluster:
        cluster.create(*queue(), limit_range(max={"cpu": "1"}), job("wide", cpu=2))
        await cluster.run(5)
        async with cluster.restarted():
            await cluster.run(10)
            assert cluster.condition("wide", "QuotaReserved") == "False/Misconfigured"
            cluster.delete("LimitRange", "bounds")
            await cluster.run(10)
            assert not cluster.is_suspended("wide")
