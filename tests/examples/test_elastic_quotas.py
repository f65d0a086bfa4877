"""Capacity scheduling: namespaces borrow what others do not use, and give it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.examples.sandbox_world import SandboxWorld, sandbox

QUOTAS = "elasticquotas.scheduling.x-k8s.io"


def quota(namespace: str, least: str, most: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"min": {"cpu": least}, "max": {"cpu": most}},
    }


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    fields = {"containers": [container], "terminationGracePeriodSeconds": 2, **spec}
    return {"metadata": {"name": name}, "spec": fields}


def running(world: SandboxWorld, namespace: str) -> list[str]:
    return [one["metadata"]["name"] for one in world.api.list("pods", namespace) if one["spec"].get("nodeName")]


def message(world: SandboxWorld, namespace: str, name: str) -> str:
    conditions = world.api.get("pods", namespace, name)["status"]["conditions"]
    return next(str(one["message"]) for one in conditions if one["type"] == "PodScheduled")


@asynccontextmanager
async def cluster() -> AsyncIterator[SandboxWorld]:
    """Four cores; team-a and team-b have a min of two and a max of four, and team-a uses all."""
    async with sandbox("elastic_quotas", config="elastic_quotas.config.yaml", crd="elasticquotas") as world:
        await world.after(5)
        assert len(running(world, "team-a")) == 4
        yield world


async def test_a_namespace_borrows_and_gives_back_whatever_the_priority() -> None:
    async with cluster() as world:
        for number in (1, 2, 3):
            world.api.create("pods", "team-b", pod(f"b-{number}"))
        await world.after(120)
        # Two for each: the third pod of team-b would borrow, and team-a does not.
        assert (len(running(world, "team-a")), len(running(world, "team-b"))) == (2, 2)


async def test_a_namespace_never_exceeds_its_max() -> None:
    async with cluster() as world:
        world.put(QUOTAS, "team-a", quota("team-a", "2", "3"))
        world.end("team-a", "a-1")
        await world.after(5)
        world.api.create("pods", "team-a", pod("again"))
        await world.after(30)
        assert "ElasticQuota would use more cpu than its max" in message(world, "team-a", "again")
        world.put(QUOTAS, "team-a", quota("team-a", "2", "4"))
        await world.after(30)
        assert "again" in running(world, "team-a")


async def test_all_together_use_at_most_the_sum_of_mins() -> None:
    async with cluster() as world:
        world.put(QUOTAS, "team-b", quota("team-b", "1", "4"))
        world.end("team-a", "a-1")
        await world.after(5)
        world.api.create("pods", "team-a", pod("again"))
        await world.after(30)
        assert "more cpu than the sum of mins" in message(world, "team-a", "again")
        world.put(QUOTAS, "team-b", quota("team-b", "2", "4"))
        await world.after(30)
        assert "again" in running(world, "team-a")


async def test_a_borrower_takes_from_its_own_namespace_by_priority_only() -> None:
    async with cluster() as world:
        world.api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "high"}, "value": 1000})
        world.api.create("pods", "team-a", pod("urgent", priorityClassName="high"))
        await world.after(60)
        assert "urgent" in running(world, "team-a") and len(running(world, "team-a")) == 4


async def test_a_pod_that_asks_for_more_than_max_disturbs_no_one() -> None:
    async with cluster() as world:
        world.api.create("pods", "team-b", pod("whale", cpu="5"))
        await world.after(60)
        assert len(running(world, "team-a")) == 4
        assert "the pod alone asks for more cpu than the max" in message(world, "team-b", "whale")


async def test_pods_without_a_quota_are_neither_counted_nor_taken_from() -> None:
    async with cluster() as world:
        for number in (1, 2, 3, 4):
            world.end("team-a", f"a-{number}")
        await world.after(5)
        for number in range(4):
            world.api.create("pods", "default", pod(f"free-{number}"))
        await world.after(5)
        world.api.create("pods", "team-b", pod("b"))
        await world.after(60)
        assert len(running(world, "default")) == 4 and running(world, "team-b") == []


async def test_no_one_goes_where_another_filter_would_still_reject_the_pod() -> None:
    async with cluster() as world:
        port = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}
        world.api.create("pods", "default", pod("web", containers=[port]))
        await world.after(5)
        assert running(world, "default") == ["web"]
        world.api.create("pods", "team-b", pod("b", containers=[{**port, "resources": {"requests": {"cpu": "1"}}}]))
        await world.after(60)
        assert len(running(world, "team-a")) == 4 and running(world, "team-b") == []
