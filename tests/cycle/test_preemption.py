"""Preemption from end to end: who goes, how, and when the preemptor comes in."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Hint,
    Node,
    NodeView,
    Permit,
    Plugin,
    PreBind,
    Reason,
    Reject,
    Rejection,
    Resource,
    Wait,
    on_event,
)
from pilotage.kube.errors import ApiStatusError
from pilotage.model import Pod
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.cycle.live_scheduler import LiveScheduler, live

NODE = node("n").cpu(4)


def low(name: str, cpu: int = 4, priority: int = 1) -> PodBuilder:
    """A pod that runs on the node."""
    return pod(name).requests(cpu=cpu).priority(priority).node("n")


def high(name: str = "high", cpu: int = 4, priority: int = 10) -> PodBuilder:
    return pod(name).requests(cpu=cpu).priority(priority)


def graceful(builder: PodBuilder) -> PodBuilder:
    return builder.spec(terminationGracePeriodSeconds=30)


def home(world: LiveScheduler, name: str) -> SubQueue | None:
    entry = world.queue.entry(f"uid-default-{name}")
    return None if entry is None else entry.home


def nominated(world: LiveScheduler, name: str) -> str:
    """As the API server has it."""
    found: str = world.api.pods[f"default/{name}"].get("status", {}).get("nominatedNodeName", "")
    return found


def is_leaving(world: LiveScheduler, name: str) -> bool:
    return "deletionTimestamp" in world.api.pods[f"default/{name}"]["metadata"]


# --- the usual course -------------------------------------------------------------------------------------------------


async def test_a_victim_goes_and_the_preemptor_takes_its_place() -> None:
    async with live() as world:
        await world.put(NODE, low("low"), high())
        assert world.api.deletions == ["low"]
        assert world.node_of("high") == "n"
        assert world.notes("low") == [("Preempted", "Preempted by pod uid-default-high on node n")]
        assert world.notes("high")[0] == (
            "FailedScheduling",
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: found a potential placement for pod on node n, preempting 1 victims",
        )


class OpenNodes(Plugin, Filter):
    """Asked after NodeResourcesFit: on a full node it is heard in the search for victims only."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if "open" in node.labels else Reject(Reason("Closed", "closed"))

    @on_event(Resource.NODE, Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node, new: Node) -> Hint:
        return Hint.QUEUE if "open" in new.labels else Hint.SKIP


async def test_a_plugin_that_forbids_only_the_preemption_wakes_the_pod_when_it_does_not_any_more() -> None:
    async with live(OpenNodes) as world:
        await world.put(NODE, low("low"), high())
        assert world.condition("high")[2] == (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 closed."
        )
        assert world.api.deletions == []
        await world.put(NODE.label("open"))
        await world.after(2)
        assert world.api.deletions == ["low"] and world.node_of("high") == "n"


async def test_the_event_names_both_pods_and_who_acted() -> None:
    async with live() as world:
        await world.put(NODE, low("low"), high())
        event = next(e for e in world.api.events if e["reason"] == "Preempted")
        assert (event["type"], event["action"]) == ("Normal", "Preempting")
        assert (event["regarding"]["name"], event["related"]["name"]) == ("low", "high")
        assert event["reportingController"] == "default-scheduler"


async def test_a_victim_is_told_why_before_it_is_deleted() -> None:
    async with live() as world:
        await world.put(NODE, graceful(low("low").generation(7)), high())
        (condition,) = world.api.pods["default/low"]["status"]["conditions"]
        assert condition == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
            "observedGeneration": 7,
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        assert is_leaving(world, "low")


async def test_while_the_victim_terminates_the_preemptor_waits_and_takes_no_further_pod() -> None:
    async with live() as world:
        await world.put(NODE, node("m").cpu(4), graceful(low("low")), low("other", priority=2).node("m"), high())
        assert (world.api.deletions, nominated(world, "high")) == (["low"], "n")
        assert home(world, "high") is SubQueue.UNSCHEDULABLE
        world.scheduler.effects.activate(["uid-default-high"])
        await world.settle()
        assert world.api.deletions == ["low"] and nominated(world, "high") == "n"
        assert "not eligible due to a terminating pod on the nominated node." in world.condition("high")[2]
        world.api.delete_pod("low")
        await world.settle()
        assert world.node_of("high") == "n"


async def test_of_several_victims_the_last_wakes_the_preemptor_once() -> None:
    async with live() as world:
        await world.put(NODE, *(low(f"low-{number}", cpu=1) for number in range(4)), high())
        assert sorted(world.api.deletions) == [f"low-{number}" for number in range(4)]
        assert world.node_of("high") == "n"
        assert world.attempts == 2


async def test_a_slow_api_server_does_not_hold_up_the_cycles() -> None:
    async with live() as world:
        await world.put(NODE, low("low-1", cpu=2), low("low-2", cpu=2))
        world.api.latency = 5.0
        await world.put(high(), pod("small").requests(memory="1Gi"))
        assert world.api.deletions == []
        assert [ticket.pod.name for ticket in world.queue.tickets() if world.queue.is_binding(ticket)] == ["small"]
        # Another pod goes meanwhile: the preemptor is held back until its own victims are on their way.
        world.api.create_pod(pod("bystander").node("n"))
        world.api.delete_pod("bystander")
        await world.settle()
        assert home(world, "high") is SubQueue.GATED
        await world.after(30.0)
        assert len(world.api.deletions) == 2 and world.node_of("high") == "n"


# --- nominations ------------------------------------------------------------------------------------------------------


async def test_a_nominated_place_is_not_given_to_a_pod_of_lower_priority() -> None:
    async with live() as world:
        await world.put(NODE, graceful(low("low")), high())
        await world.put(pod("cheeky").requests(cpu=4).priority(5))
        world.api.delete_pod("low")
        await world.after(5.0)
        assert (world.node_of("high"), world.node_of("cheeky")) == ("n", "")


async def test_a_more_important_preemptor_takes_the_nomination_away() -> None:
    async with live() as world:
        await world.put(NODE, graceful(low("low", cpu=2)), graceful(low("low-too", cpu=2, priority=2)))
        await world.put(high("mid", cpu=2, priority=5))
        assert is_leaving(world, "low") and not is_leaving(world, "low-too")
        assert nominated(world, "mid") == "n"
        await world.put(high("top", cpu=4, priority=50))
        assert is_leaving(world, "low-too")
        assert (nominated(world, "top"), nominated(world, "mid")) == ("n", "")
        assert world.cluster.nominations.node_of("uid-default-mid") == ""
        world.api.delete_pod("low")
        world.api.delete_pod("low-too")
        await world.after(5.0)
        assert (world.node_of("top"), world.node_of("mid")) == ("n", "")


async def test_a_nomination_is_taken_away_even_while_it_is_being_written() -> None:
    async with live() as world:
        world.api.status_latency = 3.0
        await world.put(NODE, graceful(low("low", cpu=2)), graceful(low("low-too", cpu=2, priority=2)))
        await world.put(high("mid", cpu=2, priority=5))
        await world.put(high("top", cpu=4, priority=50))
        assert world.cluster.nominations.node_of("uid-default-mid") == "", "the nomination is known at once"
        await world.after(60.0)
        assert (nominated(world, "top"), nominated(world, "mid")) == ("n", "")


async def test_if_all_victims_are_leaving_already_nothing_is_started_and_lesser_nominations_stay() -> None:
    async with live() as world:
        await world.put(NODE, graceful(low("low", cpu=4)), high("mid", cpu=2, priority=5))
        assert (world.api.deletions, nominated(world, "mid")) == (["low"], "n")
        await world.put(high("top", cpu=4, priority=50))
        assert world.api.deletions == ["low"]
        assert (nominated(world, "top"), nominated(world, "mid")) == ("n", "n")


async def test_the_nominated_node_is_tried_first_even_if_the_nomination_is_still_being_written() -> None:
    async with live() as world:
        world.api.status_latency = 100.0
        await world.put(
            NODE, node("roomy").cpu(64), graceful(low("low")), low("big", 64, priority=5).node("roomy"), high()
        )
        assert world.cluster.nominations.node_of("uid-default-high") == "n"
        assert nominated(world, "high") == ""
        world.api.delete_pod("big")
        world.api.delete_pod("low")
        await world.settle()
        assert world.requested() == {"n": 4000, "roomy": 0}
        await world.after(300.0)
        assert world.node_of("high") == "n"


async def test_two_preemptors_do_not_count_on_the_same_place() -> None:
    async with live() as world:
        await world.put(NODE, node("m").cpu(4), low("low-1"), low("low-2").node("m"))
        await world.put(high("high-1"), high("high-2"))
        assert sorted([world.node_of("high-1"), world.node_of("high-2")]) == ["m", "n"]
        assert sorted(world.api.deletions) == ["low-1", "low-2"]


# --- what goes wrong --------------------------------------------------------------------------------------------------


FORBIDDEN = ApiStatusError(403, "Forbidden", "not allowed")


async def test_a_deletion_that_fails_makes_the_preemptor_try_again() -> None:
    async with live() as world:
        world.api.reject_deletions.append(FORBIDDEN)
        await world.put(NODE, low("low"), high())
        assert (world.api.deletions, home(world, "high")) == ([], SubQueue.ERROR_BACKOFF)
        await world.after(3.0)
        assert world.api.deletions == ["low"] and world.node_of("high") == "n"
        assert world.notes("low") == [("Preempted", "Preempted by pod uid-default-high on node n")]


async def test_a_preemptor_whose_victims_cannot_be_evicted_backs_off_longer_and_longer_and_says_so() -> None:
    """Nothing else is to do, and other pods leave all the time: neither is a reason to try again at once."""
    async with live() as world:
        world.api.reject_deletions.extend([FORBIDDEN] * 1000)
        await world.put(NODE, low("low"), high())
        seconds = []
        for second in range(60):
            before = world.api.deletion_attempts
            world.api.create_pod(pod(f"passer-{second}").node("n"))
            world.api.delete_pod(f"passer-{second}")
            await world.after(1.0)
            if world.api.deletion_attempts > before:
                assert world.api.deletion_attempts == before + 1
                seconds.append(second)
        pauses = [after - before for before, after in itertools.pairwise(seconds)]
        assert pauses[:3] == sorted(pauses[:3]) and len(set(pauses[:3])) == 3, "1, 2, 4 ... s and what rounding adds"
        assert max(pauses) <= 12 and world.api.deletion_attempts <= 12
        assert ("FailedPreemption", f"cannot evict pod default/low from node n: {FORBIDDEN}") in world.notes("high")


async def test_if_some_of_several_deletions_fail_the_preemptor_gets_its_place_all_the_same() -> None:
    async with live() as world:
        world.api.reject_deletions.extend(ApiStatusError(403, "Forbidden", "not allowed") for _ in range(3))
        await world.put(NODE, *(low(f"low-{number}", cpu=1) for number in range(4)), high())
        await world.after(5.0)
        assert len(world.api.deletions) == 4 and world.node_of("high") == "n"


async def test_a_victim_that_is_gone_before_its_turn_leaves_no_event_and_no_pod_waiting() -> None:
    async with live() as world:
        world.api.latency = 1.0
        await world.put(NODE, low("low-1", cpu=2), low("low-2", cpu=2), high())
        for name in ("low-1", "low-2"):
            world.api.delete_pod(name)
        await world.after(10.0)
        assert (world.api.deletions, world.node_of("high")) == ([], "n")
        assert world.notes("low-1") == world.notes("low-2") == []


async def test_a_victim_that_is_gone_counts_as_evicted_before_the_watch_tells() -> None:
    """Its preemptor used to choose it again and again, as fast as the API server answered 404."""
    async with live() as world:
        await world.put(NODE, low("low"))
        world.api.hold_watch()
        world.api.delete_pod("low")
        world.api.create_pod_shown_at_once(high())
        await world.settle()
        assert world.api.patches.count("low") == 1 and world.node_of("high") == "n"
        world.api.release_watch()
        await world.settle()
        assert world.requested() == {"n": 4000}, "what the watch told late of the victim changes nothing"
        assert world.notes("low") == []


async def test_what_the_watch_says_late_of_a_deleted_victim_is_history() -> None:
    async with live() as world:
        await world.put(NODE, low("low"))
        world.api.hold_watch()
        world.api.create_pod_shown_at_once(high("now"))
        await world.settle()
        assert (world.api.deletions, world.node_of("now")) == (["low"], "n")
        world.api.release_watch()
        await world.settle()
        assert world.requested() == {"n": 4000}
        world.api.create_pod(low("low", cpu=1).uid("another"))
        await world.settle()
        assert world.requested() == {"n": 5000}, "a pod recreated under the name counts"


async def test_preemptors_do_not_choose_again_while_the_watch_lags() -> None:
    """Each victim that the watch shows leaving woke all preemptors, whose own victims still seemed to be there."""
    async with live() as world:
        await world.put(*(node(f"n{i}").cpu(4) for i in range(20)))
        await world.put(*(graceful(low(f"low-{i}")).node(f"n{i}") for i in range(20)))
        world.api.hold_watch()
        for i in range(10):
            world.api.create_pod_shown_at_once(high(f"high-{i}"))
            await world.after(2.0)
        assert len(world.api.deletions) == 10
        for _ in range(5):
            world.scheduler.effects.activate([f"uid-default-high-{i}" for i in range(10)])
            await world.after(5.0)
        assert len(world.api.deletions) == 10 and world.api.deletion_attempts == 10
        world.api.release_watch()
        await world.settle()
        for name in list(world.api.deletions):
            world.api.delete_pod(name)
        await world.after(15.0)
        assert all(world.node_of(f"high-{i}") for i in range(10)) and len(world.api.deletions) == 10


async def test_a_victim_keeps_its_place_until_it_is_gone_even_if_the_watch_has_not_shown_its_binding() -> None:
    async with live() as world:
        await world.put(NODE)
        world.api.hold_watch()
        world.api.create_pod_shown_at_once(graceful(pod("low").requests(cpu=4).priority(1)))
        await world.settle()
        assert world.node_of("low") == "n"
        world.api.create_pod_shown_at_once(high())
        await world.after(20.0)
        assert is_leaving(world, "low") and world.node_of("high") == "", "the node is not free yet"
        world.api.release_watch()
        await world.after(20.0)
        assert world.node_of("high") == ""
        world.api.delete_pod("low")
        await world.after(20.0)
        assert world.node_of("high") == "n" and world.api.deletions == ["low"]


async def test_a_preemptor_whose_deletions_are_answered_unreadably_waits_for_the_watch_but_not_for_ever() -> None:
    async with live() as world:
        world.api.answers_are_unreadable = True
        await world.put(NODE, graceful(low("low")))
        world.api.hold_watch()
        world.api.create_pod_shown_at_once(high())
        await world.settle()
        for _ in range(25):
            world.scheduler.effects.activate(["uid-default-high"])
            await world.after(1.0)
        assert world.api.deletion_attempts == 1 and home(world, "high") is SubQueue.GATED
        world.scheduler.effects.activate(["uid-default-high"])
        await world.after(400.0)
        assert world.api.deletion_attempts > 1, "it goes by what it sees in the end"


async def test_no_one_is_evicted_while_the_watch_of_pods_is_interrupted() -> None:
    async with live() as world:
        await world.put(NODE, low("low"))
        world.scheduler.effects.requeueing.note_pods_watch(False)
        await world.put(high())
        assert world.api.deletion_attempts == 0
        assert "waiting for the watch of pods, which is interrupted." in world.condition("high")[2]
        await world.after(5.0)
        world.scheduler.effects.requeueing.note_pods_watch(True)
        await world.after(2.0)
        assert world.api.deletions == ["low"] and world.node_of("high") == "n"


async def test_an_interrupted_watch_holds_preemptors_for_half_a_minute_at_most() -> None:
    async with live() as world:
        await world.put(NODE, low("low"))
        world.scheduler.effects.requeueing.note_pods_watch(False)
        await world.put(high())
        await world.after(29.0)
        assert world.api.deletion_attempts == 0
        await world.after(3.0)
        assert world.api.deletions == ["low"]


async def test_a_preemptor_that_is_deleted_meanwhile_is_forgotten() -> None:
    async with live() as world:
        await world.put(NODE, graceful(low("low")), high())
        world.api.delete_pod("high")
        world.api.delete_pod("low")
        await world.put(pod("next").requests(cpu=4))
        assert world.node_of("next") == "n"


# --- victims that are not bound yet -----------------------------------------------------------------------------------


class Doorkeeper(Plugin, Permit):
    """Holds back pods whose name begins with "low"."""

    name = "Doorkeeper"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | None:
        return Wait(600.0) if pod.name.startswith("low") else None


class SlowDisk(Plugin, PreBind):
    """Needs a minute for pods whose name begins with "low"."""

    name = "SlowDisk"
    events: ClassVar[list[str]] = []

    def __init__(self, handle: Any) -> None:
        self._clock = handle.clock

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if pod.name.startswith("low"):
            await self._clock.sleep(60.0)
            self.events.append(pod.name)


async def is_called_back(world: LiveScheduler, nodes: NodeBuilder) -> None:
    await world.put(nodes, pod("low").requests(cpu=4).priority(1))
    assert world.requested() == {"n": 4000}
    await world.put(high())
    assert (world.api.deletions, world.node_of("high"), world.node_of("low")) == ([], "n", "")
    note = "Preempted by pod uid-default-high on node n (in kube-scheduler memory)."
    assert ("Preempted", note) in world.notes("low")
    assert home(world, "low") is SubQueue.ERROR_BACKOFF


async def test_a_victim_that_waits_for_permission_goes_back_to_the_queue() -> None:
    async with live(Doorkeeper) as world:
        await is_called_back(world, NODE)
        assert "waiting on permit for pod: preempted" in world.condition("low")[2]


async def test_a_victim_in_pre_bind_is_called_back() -> None:
    SlowDisk.events.clear()
    async with live(SlowDisk) as world:
        await is_called_back(world, NODE)
        assert "preempted by DefaultPreemption" in world.condition("low")[2]
        await world.after(120.0)
        assert SlowDisk.events == [] and world.node_of("low") == ""


async def test_a_victim_whose_binding_is_on_its_way_is_deleted() -> None:
    async with live() as world:
        world.api.latency = 2.0
        await world.put(NODE, pod("low").requests(cpu=4).priority(1))
        await world.put(high())
        assert world.api.bindings == []
        await world.after(20.0)
        assert world.api.deletions == ["low"] and world.node_of("high") == "n"


async def test_a_victim_whose_binding_fails_makes_room_for_the_preemptor_before_it_is_deleted() -> None:
    """Its deletion will change nothing on the node, and so wake nobody."""
    async with live() as world:
        world.api.latency = 2.0
        world.api.reject_bindings.append(ApiStatusError(422, "Invalid", "no"))
        await world.put(NODE, pod("low").requests(cpu=4).priority(1))
        await world.put(high())
        await world.after(20.0)
        assert world.api.deletions == ["low"] and world.node_of("high") == "n"


# --- who may not ------------------------------------------------------------------------------------------------------


async def test_a_pod_that_must_not_preempt_waits() -> None:
    async with live() as world:
        await world.put(NODE, low("low"), high().spec(preemptionPolicy="Never"))
        assert (world.api.deletions, world.node_of("high")) == ([], "")
        assert world.condition("high")[2].endswith("preemption: not eligible due to preemptionPolicy=Never.")


async def test_equal_priority_is_not_enough() -> None:
    async with live() as world:
        await world.put(NODE, low("low", priority=10), high())
        assert (world.api.deletions, world.node_of("high")) == ([], "")
        why = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        assert world.condition("high")[2].endswith(why)
