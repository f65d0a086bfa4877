"""What is over in an instant is not told; what goes on is told once."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.api import CycleState, Plugin, PreBind, PreEnqueue, Reason, Reject, Rejection
from pilotage.model import Pod
from pilotage.testing import PodBuilder, node, pod
from tests.cycle.live_scheduler import LiveScheduler, live

MOMENT = 3.0
"""Seconds between two ticks."""


class Gate(Plugin, PreEnqueue):
    """Rejects pods while it is closed."""

    is_closed = True

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        return Reject(Reason("Closed", "waiting for a claim")) if Gate.is_closed else None


def condition_of(world: LiveScheduler, name: str) -> tuple[str, str] | None:
    found = world.cluster.objects("Pod")[f"default/{name}"].status.condition("PodScheduled")
    return None if found is None else (found.reason, found.message)


async def test_a_pod_that_stays_gated_is_said_to_be_once_at_the_second_tick() -> None:
    Gate.is_closed = True
    async with live(Gate) as world:
        await world.put(node("a"), pod("p"))
        await world.after(MOMENT)
        assert condition_of(world, "p") is None
        await world.after(3 * MOMENT)
        assert condition_of(world, "p") == ("SchedulingGated", "waiting for a claim")
        assert world.api.patches == ["p"]


async def test_a_pod_that_is_gated_for_an_instant_is_not() -> None:
    Gate.is_closed = True
    async with live(Gate) as world:
        await world.put(node("a"), pod("p"))
        Gate.is_closed = False
        world.scheduler.effects.activate([world.cluster.objects("Pod")["default/p"].uid])
        await world.settle()
        await world.after(3 * MOMENT)
        assert world.node_of("p") == "a" and world.api.patches == []


FAILED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}


@pytest.mark.parametrize("gated", [pod("p").gate("x"), pod("p").status(conditions=[FAILED])], ids=["gate", "reason"])
async def test_a_pod_whose_status_says_why_it_is_not_scheduled_keeps_that(gated: PodBuilder) -> None:
    Gate.is_closed = True
    async with live(Gate) as world:
        await world.put(node("a"), gated)
        await world.after(3 * MOMENT)
        assert world.api.patches == []


class Slow(Plugin, PreBind):
    """Holds pods in PreBind until it is told to let go."""

    gate: asyncio.Event

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        await Slow.gate.wait()
        return None


async def test_a_pod_that_is_long_in_pre_bind_is_announced() -> None:
    Slow.gate = asyncio.Event()
    async with live(Slow) as world:
        await world.put(node("a"), pod("p"))
        assert world.cluster.objects("Pod")["default/p"].status.nominated_node_name == "a"
        assert world.api.patches == ["p"]
        Slow.gate.set()
        await world.settle()
        assert world.node_of("p") == "a"


async def test_a_pod_that_is_quickly_through_pre_bind_is_not() -> None:
    Slow.gate = asyncio.Event()
    Slow.gate.set()
    async with live(Slow) as world:
        await world.put(node("a"), pod("p"))
        await world.after(3)
        assert world.node_of("p") == "a" and world.api.patches == []
