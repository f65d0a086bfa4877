"""Gangs are bound together or not at all, and do not take each other's places away."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.examples.sandbox_world import SandboxWorld, sandbox


def member(gang: str, number: int, size: int, cpu: str = "1") -> dict[str, Any]:
    labels = {"example.com/gang": gang, "example.com/gang-size": str(size)}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": f"{gang}-{number}", "labels": labels}, "spec": {"containers": [container]}}


def members(world: SandboxWorld, gang: str) -> list[dict[str, Any]]:
    return [pod for pod in world.api.list("pods") if pod["metadata"].get("labels", {}).get("example.com/gang") == gang]


def end(world: SandboxWorld, gang: str) -> None:
    for pod in members(world, gang):
        world.api.delete("pods", "default", pod["metadata"]["name"], {"gracePeriodSeconds": 0})


def state_of(world: SandboxWorld, gang: str) -> str:
    nodes = [pod["spec"].get("nodeName") for pod in members(world, gang)]
    return "none" if not any(nodes) else "all" if all(nodes) else "some"


def assumed_without_binding(world: SandboxWorld) -> int:
    """Places that are held by pods which are not bound."""
    return world.scheduler.cluster.placed_count - sum(bool(node) for node in world.nodes_of().values())


async def test_of_two_gangs_that_interleave_one_runs_and_the_other_holds_nothing() -> None:
    async with sandbox("coscheduling") as world:
        await world.after(10)
        assert sorted([state_of(world, "ants"), state_of(world, "bees")]) == ["all", "none"]
        await world.after(300)
        assert sorted([state_of(world, "ants"), state_of(world, "bees")]) == ["all", "none"]
        assert assumed_without_binding(world) == 0


async def test_the_other_gang_follows_when_the_first_is_gone() -> None:
    async with sandbox("coscheduling") as world:
        await world.after(10)
        first, second = ("ants", "bees") if state_of(world, "ants") == "all" else ("bees", "ants")
        end(world, first)
        await world.after(60)
        assert state_of(world, second) == "all"


async def test_without_the_plugin_both_get_a_part() -> None:
    async with sandbox("coscheduling", plugin=False) as world:
        await world.after(10)
        assert [state_of(world, "ants"), state_of(world, "bees")] == ["some", "some"]


async def test_a_gang_waits_until_all_its_members_exist() -> None:
    async with sandbox("coscheduling", manifest=False, nodes=3) as world:
        for number in (1, 2):
            world.api.create("pods", "default", member("cats", number, 3))
        await world.after(60)
        assert state_of(world, "cats") == "none" and world.scheduler.cluster.placed_count == 0
        assert "waiting for 1 more member(s) of gang cats" in world.condition("cats-1")["message"]
        world.api.create("pods", "default", member("cats", 3, 3))
        await world.after(15)
        assert state_of(world, "cats") == "all"


async def test_a_gang_that_can_never_fit_does_not_keep_others_from_running() -> None:
    async with sandbox("coscheduling", manifest=False, nodes=2) as world:
        for number in range(40):
            world.api.create("pods", "default", member("whales", number, 40))
        for number in range(2):
            world.api.create("pods", "default", member("mice", number, 2))
        await world.after(60)
        assert (state_of(world, "whales"), state_of(world, "mice")) == ("none", "all")


async def test_a_gang_that_waits_in_vain_lets_others_in_after_its_time() -> None:
    """The last member is gated, so that it exists but is never tried: only the time-out can help."""
    async with sandbox("coscheduling", manifest=False, nodes=1) as world:
        cpus = world.api.list("nodes")[0]["status"]["allocatable"]["cpu"]
        gated = member("cats", 2, 2)
        gated["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
        world.api.create("pods", "default", member("cats", 1, 2, cpu=cpus))
        world.api.create("pods", "default", gated)
        await world.after(1)
        assert world.scheduler.cluster.placed_count == 1
        world.api.create("pods", "default", {"metadata": {"name": "dog"}, "spec": member("x", 1, 1)["spec"]})
        await world.after(5)
        assert world.nodes_of("dog") == {"dog": ""}
        await world.after(40)
        assert world.nodes_of("dog")["dog"] and state_of(world, "cats") == "none"


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_the_order_no_gang_is_ever_split(seed: int) -> None:
    """Room for 4 of 12 pods at a time; gangs end and make room for others until all have run."""
    rng = random.Random(seed)
    async with sandbox("coscheduling", manifest=False, nodes=1) as world:
        node = world.api.list("nodes")[0]
        node["status"]["allocatable"]["cpu"] = "4"
        world.api.update("nodes", "", node["metadata"]["name"], node, subresource="status")
        sizes = {"a": 4, "b": 3, "c": 3, "d": 2}
        pods = [member(gang, number, size) for gang, size in sizes.items() for number in range(size)]
        rng.shuffle(pods)
        for pod in pods:
            world.api.create("pods", "default", pod)
            if rng.random() < 0.3:
                await world.after(rng.random())
        ran: set[str] = set()
        for _ in range(40):
            await world.after(15)
            states = {gang: state_of(world, gang) for gang in sizes if gang not in ran}
            assert "some" not in states.values()
            for gang in [gang for gang, state in states.items() if state == "all"]:
                ran.add(gang)
                end(world, gang)
        assert ran == set(sizes)
