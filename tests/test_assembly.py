"""What the composition root adds of its own."""

from __future__ import annotations

import msgspec

from pilotage.api import CycleState, Handle, Plugin, PostBind, QueuedPod, QueueSort
from pilotage.assembly import contained
from pilotage.model import KINDS, Pod
from pilotage.observe.metrics import Metrics
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live


class Touchy(Plugin, QueueSort):
    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        if queued.pod.name == "bad":
            raise ValueError("boom")
        return (queued.timestamp,)


def test_queue_sort_that_raises_falls_back_to_priority_and_is_counted() -> None:
    metrics = Metrics()
    sort_key = contained(Touchy(), metrics)
    assert sort_key(QueuedPod(pod("good").build(), 5.0, 0)) == (5.0,)
    assert sort_key(QueuedPod(pod("bad").priority(7).build(), 5.0, 0)) == (-7, 5.0)
    assert metrics.plugin_errors_total.value("Touchy") == 1


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
