"""What is over in an instant is not told; what goes on is told once."""

from __future__ import annotations

import asyncio

from pilotage.api import CycleState, Plugin, PreBind, Refusal
from pilotage.cycle.belated import Belated
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live


def test_news_are_told_at_the_second_tick() -> None:
    told: list[str] = []
    belated = Belated(told.append)
    belated.note("a", "a is so")
    belated.tick()
    assert told == []
    belated.tick()
    belated.tick()
    assert told == ["a is so"]


def test_what_was_taken_back_is_not_told_and_the_newest_is() -> None:
    told: list[str] = []
    belated = Belated(told.append)
    for key in "abc":
        belated.note(key, "first")
    belated.take_back("a")
    belated.tick()
    belated.take_back("b")
    belated.note("c", "second")
    belated.tick()
    belated.tick()
    assert told == ["second"]


class Slow(Plugin, PreBind):
    """Holds pods in PreBind until it is told to let go."""

    gate: asyncio.Event

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Refusal | None:
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
