"""Coscheduling with PodGroups, as its documentation describes it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from pilotage.api import CycleState, QueuedPod
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.plugin_files import load_plugin_file
from pilotage.model import ObjectMeta
from pilotage.testing import FakeHandle, node, pod
from tests.examples.sandbox_world import EXAMPLES, SandboxWorld, sandbox

GROUPS = "podgroups.scheduling.x-k8s.io"
LABEL = "scheduling.x-k8s.io/pod-group"


def group(name: str, members: int, timeout: int = 10) -> dict[str, Any]:
    spec = {"minMember": members, "scheduleTimeoutSeconds": timeout}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def member(of: str, number: int, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": f"{of}-{number}", "labels": {LABEL: of}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def state_of(world: SandboxWorld, name: str) -> str:
    nodes = world.nodes_of(f"{name}-").values()
    return "none" if not any(nodes) else "all" if all(nodes) else "some"


def end(world: SandboxWorld, name: str) -> None:
    for one in world.nodes_of(f"{name}-"):
        world.end("default", one)


def held(world: SandboxWorld) -> int:
    """Places that are held by pods which are not bound."""
    return world.scheduler.cluster.placed_count - sum(bool(node) for node in world.nodes_of().values())


@asynccontextmanager
async def cluster(*, manifest: bool = False, cpu: str = "", crd: str = "podgroups") -> AsyncIterator[SandboxWorld]:
    """With one node of so many cores, or what the manifest says."""
    config = "pod_groups.config.yaml"
    async with sandbox("pod_groups", manifest=manifest, config=config, nodes=None if manifest else 1, crd=crd) as world:
        if cpu:
            known = world.api.list("nodes")[0]
            known["status"]["allocatable"]["cpu"] = cpu
            world.api.update("nodes", "", known["metadata"]["name"], known, subresource="status")
        yield world


async def test_of_two_groups_one_runs_and_the_other_follows_when_there_is_room() -> None:
    async with cluster(manifest=True) as world:
        await world.after(60)
        assert sorted([state_of(world, "ants"), state_of(world, "bees")]) == ["all", "none"] and held(world) == 0
        first, second = ("ants", "bees") if state_of(world, "ants") == "all" else ("bees", "ants")
        end(world, first)
        await world.after(60)
        assert state_of(world, second) == "all"


@pytest.mark.parametrize("turns", range(12))
async def test_the_other_group_follows_however_the_first_one_ends(turns: int) -> None:
    """Room may be made while members give the places up that they took too early."""
    async with cluster(manifest=True) as world:
        await world.after(60)
        first, second = ("ants", "bees") if state_of(world, "ants") == "all" else ("bees", "ants")
        for one in world.nodes_of(f"{first}-"):
            world.end("default", one)
            for _ in range(turns):
                await asyncio.sleep(0)
        await world.after(60)
        assert state_of(world, second) == "all" and held(world) == 0


async def test_a_pod_waits_for_its_group_to_be_made() -> None:
    async with cluster() as world:
        for number in (1, 2):
            world.api.create("pods", "default", member("cats", number))
        await world.after(30)
        assert 'pod group "default/cats" not found' in world.condition("cats-1")["message"]
        world.api.create(GROUPS, "default", group("cats", 2))
        await world.after(15)
        assert state_of(world, "cats") == "all"


async def test_a_group_waits_for_its_siblings_and_for_a_smaller_minimum() -> None:
    async with cluster() as world:
        world.put(GROUPS, "default", group("cats", 3))
        for number in (1, 2):
            world.api.create("pods", "default", member("cats", number))
        await world.after(30)
        message = "cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
        assert message in world.condition("cats-1")["message"] and held(world) == 0
        world.put(GROUPS, "default", group("cats", 2))
        await world.after(15)
        assert state_of(world, "cats") == "all"


async def test_more_pods_than_the_minimum_follow_one_by_one() -> None:
    async with cluster(cpu="3") as world:
        world.put(GROUPS, "default", group("cats", 2))
        for number in range(4):
            world.api.create("pods", "default", member("cats", number))
        await world.after(60)
        assert sorted(map(bool, world.nodes_of("cats-").values())) == [False, True, True, True]


async def test_members_with_a_place_give_it_up_after_the_timeout_of_the_group() -> None:
    """The last member is gated, so that it exists but is never tried: only the time-out can help."""
    async with cluster(cpu="1") as world:
        world.put(GROUPS, "default", group("cats", 2, timeout=10))
        world.api.create("pods", "default", member("cats", 1))
        world.api.create("pods", "default", member("cats", 2, schedulingGates=[{"name": "example.com/later"}]))
        await world.after(1)
        assert held(world) == 1
        world.api.create("pods", "default", {"metadata": {"name": "dog"}, "spec": member("x", 1)["spec"]})
        await world.after(8)
        assert world.nodes_of("dog") == {"dog": ""}
        await world.after(40)
        assert world.nodes_of("dog")["dog"] and state_of(world, "cats") == "none"


async def test_the_kind_is_installed_after_the_scheduler_has_started() -> None:
    async with cluster(crd="") as world:
        world.api.create("pods", "default", {"metadata": {"name": "dog"}, "spec": member("x", 1)["spec"]})
        world.api.create("pods", "default", member("cats", 1))
        await world.after(10)
        assert world.nodes_of("dog")["dog"] and state_of(world, "cats") == "none"
        definition = _definition()
        world.api.create("customresourcedefinitions.apiextensions.k8s.io", "", definition)
        world.api.create(GROUPS, "default", group("cats", 1))
        await world.after(60)
        assert state_of(world, "cats") == "all"


def _definition() -> dict[str, Any]:
    definition: dict[str, Any] = yaml.safe_load((EXAMPLES / "crds" / "podgroups.yaml").read_text())
    return definition


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_the_order_no_group_is_ever_split(seed: int) -> None:
    """Room for 4 of 12 pods at a time; groups end and make room for others until all have run."""
    rng = random.Random(seed)
    async with cluster(cpu="4") as world:
        sizes = {"a": 4, "b": 3, "c": 3, "d": 2}
        for name, size in sizes.items():
            world.put(GROUPS, "default", group(name, size))
        pods = [member(name, number) for name, size in sizes.items() for number in range(size)]
        rng.shuffle(pods)
        for one in pods:
            world.api.create("pods", "default", one)
            if rng.random() < 0.3:
                await world.after(rng.random())
        ran: set[str] = set()
        for _ in range(40):
            await world.after(15)
            states = {name: state_of(world, name) for name in sizes if name not in ran}
            assert "some" not in states.values()
            for name in [name for name, state in states.items() if state == "all"]:
                ran.add(name)
                end(world, name)
        assert ran == set(sizes)


def test_the_queue_is_in_the_order_of_priority_then_of_the_age_of_the_group() -> None:
    (cls,) = load_plugin_file(EXAMPLES / "pod_groups.py")
    handle = FakeHandle(watches=cls.watches)
    for name, created in (("old", "2026-01-01T00:00:00Z"), ("new", "2026-02-01T00:00:00Z")):
        metadata = ObjectMeta(name=name, namespace="default", creation_timestamp=created)
        handle.put(cls.watches[0].struct(metadata=metadata))
    plugin: Any = cls(handle, cls.args_type())
    queued = [
        QueuedPod(pod("n-1").label(LABEL, "new").build(), 1.0, 1),
        QueuedPod(pod("o-1").label(LABEL, "old").build(), 2.0, 1),
        QueuedPod(pod("n-2").label(LABEL, "new").priority(10).build(), 3.0, 1),
        QueuedPod(pod("o-2").label(LABEL, "old").build(), 4.0, 1),
    ]
    assert [one.pod.name for one in sorted(queued, key=plugin.sort_key)] == ["n-2", "o-1", "o-2", "n-1"]


@pytest.mark.parametrize("example", ["pod_groups", "coscheduling"])
def test_room_that_is_made_while_a_group_gives_up_is_news_to_it(example: str) -> None:
    """It was not there when the group tried: a group that took it for tried would wait for ever."""
    (cls,) = load_plugin_file(EXAMPLES / f"{example}.py")
    handle = FakeHandle(watches=cls.watches)
    first, second = (
        pod(f"cat-{number}").label(LABEL, "cats").label("example.com/gang", "cats").label("example.com/gang-size", "2")
        for number in (1, 2)
    )
    leaving = pod("dog").node("n").build()
    handle.put(node("n").build(), leaving, first.build(), second.build())
    if cls.watches:
        handle.put({**group("cats", 2), "metadata": {"name": "cats", "namespace": "default"}})
    plugin: Any = cls(handle, cls.args_type())
    state = CycleState()
    assert plugin.pre_filter(state, first.build(), handle.nodes) is None
    plugin.reserve(state, first.build(), "n")
    assert plugin.pre_filter(state, second.build(), handle.nodes) is None
    plugin.post_filter(state, second.build(), Diagnosis(node_names=("n",)))
    assert plugin.pre_filter(state, second.build(), handle.nodes) is not None
    handle.remove(leaving)
    plugin.unreserve(state, first.build(), "n")
    assert plugin.pre_filter(state, second.build(), handle.nodes) is None
