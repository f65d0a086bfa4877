"""What happens while a pod is being scheduled or waits to be bound is not lost on it (KEP-4247).

The flush of unschedulable pods would come after five minutes; no test waits for it here.
"""

from __future__ import annotations

from typing import Any

from pilotage.api import Action, Filter, Hint, Permit, Plugin, Reject, Resource, Wait, on_event
from pilotage.api.results import Reason
from pilotage.api.state import CycleState
from pilotage.api.views import NodeView
from pilotage.model import Pod
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import NodeBuilder, node, pod
from tests.cycle.live_scheduler import LiveScheduler, live


def home_of(world: LiveScheduler, name: str) -> SubQueue:
    (home,) = [entry.home for entry in world.queue.entries() if entry.pod.name == name]
    return home


def during_the_search(world: LiveScheduler, name: str, arriving: NodeBuilder) -> None:
    """Let a node come in once, after the pod was judged against the cluster without it."""

    def arrive(tried: Pod) -> None:
        if tried.name == name:
            world.on_search.remove(arrive)
            world.api.put_node(arriving)
            world.scheduler.drain_inbox()

    world.on_search.append(arrive)


async def test_node_that_comes_while_the_pod_is_judged_gets_the_pod() -> None:
    async with live() as world:
        await world.put(node("small").cpu(1))
        during_the_search(world, "big", node("large").cpu(4))
        await world.put(pod("big").requests(cpu=3))
        await world.after(2.0)
        assert world.node_of("big") == "large" and world.queue.recorded_events == 0


async def test_node_that_cannot_help_leaves_the_pod_where_it_is() -> None:
    async with live() as world:
        await world.put(node("small").cpu(1))
        during_the_search(world, "big", node("tiny").cpu(1))
        await world.put(pod("big").requests(cpu=3))
        await world.after(2.0)
        assert home_of(world, "big") is SubQueue.UNSCHEDULABLE and world.attempts == 1


class Turnstile(Plugin, Permit):
    """Holds every pod for ten seconds, and then sends it back; what helps is a node with its key."""

    has_key = False

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | None:
        return None if type(self).has_key else Wait(10.0)

    @on_event(Resource.NODE, Action.ADD)
    def after_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if "key" in new.labels else Hint.SKIP


async def test_event_during_the_wait_for_permission_counts_when_permission_is_rejected() -> None:
    Turnstile.has_key = False
    async with live(Turnstile) as world:
        await world.put(node("a"), pod("p"))
        await world.after(5.0)
        await world.put(node("b").label("key"))
        Turnstile.has_key = True
        await world.after(8.0)
        assert world.node_of("p") != "" and world.attempts == 2


async def test_event_of_no_use_during_the_wait_for_permission_wakes_no_one() -> None:
    Turnstile.has_key = False
    async with live(Turnstile) as world:
        await world.put(node("a"), pod("p"))
        await world.after(5.0)
        await world.put(node("b"))
        Turnstile.has_key = True
        await world.after(60.0)
        assert home_of(world, "p") is SubQueue.UNSCHEDULABLE and world.queue.recorded_events == 0


class Once(Plugin, Filter):
    """Rejects a pod until a node has come in; nobody but its hint knows."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Reject | None:
        return None if node.name == "b" or pod.name != "p" else Reject(Reason("NotHere", "not here"))

    @on_event(Resource.NODE, Action.ADD)
    def after_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        raise RuntimeError("cannot say")


async def test_hint_that_raises_about_a_missed_event_brings_the_pod_back() -> None:
    async with live(Once) as world:
        await world.put(node("a"))
        during_the_search(world, "p", node("b"))
        await world.put(pod("p"))
        await world.after(2.0)
        assert world.node_of("p") == "b"
        assert world.scheduler.metrics.queueing_hint_errors_total.values() == {("Once",): 1}
        hints = world.scheduler.metrics.queueing_hint_execution_duration_seconds
        assert hints.count("Once", "NodeAdd", "Error") == 1


async def test_binding_that_fails_is_tried_again_whatever_happened_meanwhile() -> None:
    async with live() as world:
        await world.put(node("a"))
        world.api.latency = 5.0
        await world.put(pod("p"))
        world.api.put_node(node("b"))
        (ticket,) = world.queue.tickets()
        assert world.queue.is_binding(ticket) and world.queue.recorded_events == 0, (
            "nothing is kept for a pod that binds"
        )
        world.api.delete_pod("p")
        await world.after(10.0)
        assert list(world.queue.tickets()) == [] and world.requested() == {"a": 0, "b": 0}
