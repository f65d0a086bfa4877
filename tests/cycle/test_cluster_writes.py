"""The cluster as a middleware: a decision is seen at once, sent in the background, and taken back if that fails."""

from __future__ import annotations

import pytest

from pilotage.api import Plugin, PreEnqueue, Reason, Reject, Rejection
from pilotage.api.conditions import PodCondition
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.model import Pod
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import LiveScheduler, live

SMALL = node("a").cpu("1")
BIG_POD = pod("p").requests(cpu="4")
FORBIDDEN = ApiStatusError(403, "Forbidden", "no")


def seen(world: LiveScheduler, name: str = "p") -> Pod:
    found: Pod = world.cluster.objects("Pod")[f"default/{name}"]
    return found


def reason_seen(world: LiveScheduler) -> str:
    condition = seen(world).status.condition("PodScheduled")
    return "" if condition is None else condition.reason


def condition(message: str) -> PodCondition:
    return PodCondition("Checked", "True", "Test", message, 0, "2026-01-01T00:00:00Z")


async def test_why_a_pod_waits_is_seen_before_the_api_server_knows() -> None:
    async with live() as world:
        world.api.status_latency = 5
        await world.put(SMALL, BIG_POD)
        assert reason_seen(world) == "Unschedulable" and world.queue.size(SubQueue.UNSCHEDULABLE) == 1
        assert "status" not in world.api.pods["default/p"]
        entry = world.queue.entry(seen(world).uid)
        assert entry is not None and entry.pod is seen(world), "the next attempt sees it too"
        await world.after(6)
        assert world.condition("p")[1] == "Unschedulable" and world.cluster.received("Pod", "default/p") is seen(world)


async def test_what_could_not_be_written_is_taken_back() -> None:
    async with live() as world:
        world.api.status_latency = 5
        world.api.reject_patches.append(FORBIDDEN)
        await world.put(SMALL, BIG_POD)
        assert reason_seen(world) == "Unschedulable"
        await world.after(6)
        assert reason_seen(world) == "" and world.cluster.received("Pod", "default/p") is seen(world)


async def test_taking_back_one_change_keeps_what_is_still_on_its_way() -> None:
    async with live() as world:
        world.api.status_latency = 5
        world.api.reject_patches.append(FORBIDDEN)
        await world.put(SMALL, BIG_POD)
        world.scheduler.effects.writes.patch_status(seen(world), condition("later"))
        await world.after(6)
        assert reason_seen(world) == "Unschedulable", "the second patch says it again"
        await world.after(6)
        assert world.condition("p")[1] == "Unschedulable"
        assert {c.type for c in seen(world).status.conditions} == {"PodScheduled", "Checked"}


async def test_an_update_from_elsewhere_does_not_hide_what_is_on_its_way() -> None:
    async with live() as world:
        world.api.status_latency = 5
        await world.put(SMALL, BIG_POD)
        world.api.update_pod(BIG_POD.label("new", "yes"))
        await world.settle()
        assert seen(world).labels["new"] == "yes" and reason_seen(world) == "Unschedulable"
        await world.after(6)
        assert world.condition("p")[1] == "Unschedulable" and reason_seen(world) == "Unschedulable"


async def test_the_same_words_are_not_sent_twice() -> None:
    async with live() as world:
        await world.put(SMALL, BIG_POD)
        world.scheduler.effects.activate([seen(world).uid])
        await world.after(30)
        assert world.attempts == 2 and world.api.patches == ["p"]


async def test_a_pod_that_is_gone_is_not_written_to() -> None:
    async with live() as world:
        world.api.status_latency = 5
        await world.put(SMALL, *(pod(f"q{n}").requests(cpu="4") for n in range(32)), BIG_POD)
        world.api.delete_pod("p")
        await world.after(30)
        assert len(world.api.patches) == 32 and "p" not in world.api.patches


async def test_a_binding_through_the_facade_counts_at_once_and_not_any_more_if_it_fails() -> None:
    async with live() as world:
        await world.put(SMALL, pod("p").requests(cpu="1").scheduler("somebody-else"))
        world.api.reject_bindings.append(FORBIDDEN)
        with pytest.raises(ApiStatusError):
            await world.scheduler.effects.writes.bind(seen(world), "a")
        await world.settle()
        assert world.requested() == {"a": 0}
        await world.scheduler.effects.writes.bind(seen(world), "a")
        assert world.requested() == {"a": 1000}
        await world.settle()
        assert world.node_of("p") == "a" and not world.cluster.is_assumed(seen(world).uid)


# --- lost answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [TransportError("cut", sent=True), ApiStatusError(500, "", "oops")], ids=repr)
async def test_a_binding_whose_answer_was_lost_is_found_to_be_done(error: Exception) -> None:
    async with live() as world:
        world.api.lose_answers.append(error)
        await world.put(SMALL, pod("p").requests(cpu="1"))
        await world.after(2)
        assert world.node_of("p") == "a" and len(world.api.bindings) == 1
        assert [reason for reason, _ in world.notes("p")] == ["Scheduled"]
        assert world.condition("p")[0] == "True", "nobody says that it could not be scheduled"


@pytest.mark.parametrize("error", [ApiStatusError(429, "", "", 1.0), TransportError("", sent=False)], ids=repr)
async def test_a_binding_that_was_not_taken_in_is_sent_again(error: Exception) -> None:
    async with live() as world:
        world.api.reject_bindings.append(error)
        await world.put(SMALL, pod("p").requests(cpu="1"))
        await world.after(2)
        assert world.node_of("p") == "a" and [reason for reason, _ in world.notes("p")] == ["Scheduled"]


# --- gated pods -------------------------------------------------------------------------------------------------------


class Doorman(Plugin, PreEnqueue):
    """Lets nobody in without a badge."""

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        return None if "badge" in pod.labels else Reject(Reason("NoBadge", "waiting for a badge"))


async def test_a_pod_that_is_held_back_says_so_in_its_status() -> None:
    async with live(Doorman) as world:
        await world.put(SMALL, pod("p").requests(cpu="1"))
        assert world.queue.size(SubQueue.GATED) == 1
        await world.after(6)
        assert world.condition("p") == ("False", "SchedulingGated", "waiting for a badge")
        world.api.update_pod(pod("p").requests(cpu="1").label("badge", "7"))
        await world.settle()
        assert world.node_of("p") == "a" and len(world.api.patches) == 1


async def test_a_pod_that_is_held_back_for_an_instant_costs_no_write() -> None:
    async with live(Doorman) as world:
        await world.put(SMALL, pod("p").requests(cpu="1"))
        await world.after(3)
        world.api.update_pod(pod("p").requests(cpu="1").label("badge", "7"))
        await world.after(6)
        assert world.node_of("p") == "a" and world.api.patches == []


async def test_a_pod_with_scheduling_gates_is_left_to_the_api_server() -> None:
    async with live() as world:
        await world.put(SMALL, pod("p").gate("x"))
        assert world.queue.size(SubQueue.GATED) == 1 and world.api.patches == []
