"""With the gates off the same is written, but the scheduler waits for it."""

from __future__ import annotations

import pytest

from pilotage.kube.errors import ApiStatusError
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live

NOTHING_WAITS = {"SchedulerAsyncAPICalls": True}
IN_PLACE = {"SchedulerAsyncAPICalls": False}
SYNC_PREEMPTION = {"SchedulerAsyncPreemption": False}
NODE = node("a").cpu("2")
BIG = [pod(f"big{number}").requests(cpu="4") for number in range(4)]
LOW = pod("low").requests(cpu="1").priority(1)
HIGH = pod("high").requests(cpu="2").priority(9)


@pytest.mark.parametrize(("gates", "tried_at_once"), [(NOTHING_WAITS, 4), (IN_PLACE, 1)], ids=["on", "off"])
async def test_only_without_the_gate_a_cycle_waits_for_its_status_patch(
    gates: dict[str, bool], tried_at_once: int
) -> None:
    async with live(gates=gates) as world:
        world.api.status_latency = 1
        await world.put(NODE, *BIG)
        assert world.attempts == tried_at_once
        await world.after(10)
        assert world.attempts == 4 and sorted(world.api.patches) == ["big0", "big1", "big2", "big3"]
        assert all(world.condition(name)[1] == "Unschedulable" for name in world.api.patches)


async def test_in_place_a_failed_patch_does_not_stop_the_loop() -> None:
    async with live(gates=IN_PLACE) as world:
        world.api.reject_patches.extend([ApiStatusError(500, "", "")] * 4)
        await world.put(NODE, BIG[0], pod("small").requests(cpu="1"))
        await world.after(10)
        assert world.node_of("small") == "a"


async def test_in_place_a_binding_does_not_hold_up_the_next_pod() -> None:
    async with live(gates=IN_PLACE) as world:
        world.api.latency = 5
        await world.put(NODE, pod("p").requests(cpu="1"), pod("q").requests(cpu="1"))
        assert world.requested() == {"a": 2000}
        await world.after(6)
        assert (world.node_of("p"), world.node_of("q")) == ("a", "a")


@pytest.mark.parametrize("gates", [SYNC_PREEMPTION, {**SYNC_PREEMPTION, **IN_PLACE}], ids=["preemption", "both"])
async def test_without_the_gate_a_preemptor_goes_back_when_its_victims_are_gone(gates: dict[str, bool]) -> None:
    async with live(gates=gates) as world:
        await world.put(NODE, LOW, pod("low2").requests(cpu="1").priority(1))
        world.api.latency = 3
        await world.put(HIGH)
        assert world.queue.size(SubQueue.IN_FLIGHT) == 1, "it is in its cycle still"
        assert world.cluster.nominations.node_of("uid-default-high") == ""
        await world.after(7)
        assert sorted(world.api.deletions) == ["low", "low2"]
        assert world.queue.size(SubQueue.GATED) == 0
        await world.after(30)
        assert world.node_of("high") == "a"


async def test_with_the_gate_it_goes_back_at_once() -> None:
    async with live() as world:
        await world.put(NODE, LOW, pod("low2").requests(cpu="1").priority(1))
        world.api.latency = 3
        await world.put(HIGH)
        assert world.queue.size(SubQueue.IN_FLIGHT) == 0
        assert world.cluster.nominations.node_of("uid-default-high") == "a"


async def test_nothing_is_nominated_where_a_victim_could_not_be_evicted() -> None:
    async with live(gates=SYNC_PREEMPTION) as world:
        await world.put(NODE, pod("low").requests(cpu="2").priority(1))
        world.api.reject_deletions.append(ApiStatusError(403, "Forbidden", "no"))
        world.api.latency = 3
        await world.put(HIGH)
        await world.after(3.5)
        assert world.attempts == 2, "the preemptor backs off"
        assert world.cluster.nominations.node_of("uid-default-high") == ""
        await world.after(60)
        assert world.node_of("high") == "a"
