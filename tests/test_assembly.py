"""What the composition root adds of its own."""

from __future__ import annotations

import asyncio

import msgspec

from pilotage.api import CycleState, Handle, Plugin, PostBind
from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS, Pod
from pilotage.model.kinds import POD_GROUPS, WATCHED
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock, node, pod
from tests.cycle.live_scheduler import live


class Blinker(Plugin, PostBind):
    """Uses what the handle offers besides the cluster."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._handle.record_event(pod, "Normal", "Blinked", "Binding", f"the lights of {node_name} blinked")
        self._handle.count("blinks_total")
        self._handle.count("blinks_total", amount=2)
        body = msgspec.json.encode({"reason": "Sent", "note": "by hand", "regarding": {"name": pod.name}})
        await self._handle.client.create(KINDS["events"], pod.namespace, body)


async def test_handle_offers_events_counters_and_the_api_server() -> None:
    async with live(Blinker) as world:
        await world.put(node("a"), pod("p"))
        assert ("Blinked", "the lights of a blinked") in world.notes("p")
        assert ("Sent", "by hand") in world.notes("p")
        assert world.scheduler.metrics.plugin_counter_total.values() == {("blinks_total",): 3}


async def test_the_age_of_the_last_contact_is_told_for_every_kind_that_is_watched() -> None:
    clock = VirtualClock()
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=1, port=None), clock, seeded(1)) as cluster:
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, seeded(1), SchedulerOptions())
        ages = process.scheduler.metrics.watch_contact_age_seconds
        assert ages.values() == {}, "nobody watches yet"
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run())
            highest = 0.0
            for _ in range(60):
                await clock.advance(5.0)
                highest = max(highest, *ages.values().values())
            assert {resource for (resource,) in ages.values()} == {*WATCHED, POD_GROUPS}
            assert highest <= 70.0, "a bookmark every minute"
            running.cancel()
