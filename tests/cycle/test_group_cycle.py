"""The cycle of a group: all or nothing whatever plugins do, extenders beside it, and its entry in the queue."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import pytest

from pilotage.api import (
    CycleState,
    Filter,
    GroupAttempt,
    NodeView,
    Permit,
    Plugin,
    PodGroupPostFilter,
    PreEnqueue,
    Reason,
    Reject,
    Rejection,
    Reserve,
)
from pilotage.api.budget import BudgetExceeded
from pilotage.cycle.report import scheduler_report
from pilotage.explain.queue_place import group_place
from pilotage.explain.text_lines import queue_lines
from pilotage.model import Pod
from pilotage.queue.report import Selection
from pilotage.queue.sub_queues import SubQueue
from pilotage.simulate.memory_api import Fault
from pilotage.simulate.shorthands import full_object
from tests.cycle.group_world import group, members, node, pod, world

EXTENDER = {
    "extenders": [
        {"urlPrefix": "http://e1", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1,
         "nodeCacheCapable": True}
    ]
}  # fmt: skip


class Failing(Plugin, Filter, Reserve, Permit):
    """Raises where it is told to, for one pod."""

    at = ""
    error: BaseException = RuntimeError("out of order")

    def _fail(self, where: str, pod: Pod) -> None:
        if type(self).at == where and pod.name == "g-2":
            raise type(self).error

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        self._fail("filter", pod)
        return None

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        self._fail("reserve", pod)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._fail("unreserve", pod)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        self._fail("permit", pod)
        return None


@pytest.mark.parametrize("error", [RuntimeError("out of order"), BudgetExceeded(2.0, 0.5)], ids=["raises", "budget"])
@pytest.mark.parametrize("at", ["filter", "reserve", "permit"])
async def test_no_member_holds_a_place_after_a_plugin_has_failed(
    at: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "at", at)
    monkeypatch.setattr(Failing, "error", error)
    async with world(Failing) as w:
        await w.apply(node("a", cpu=8))
        before = w.facts()
        await w.apply(group("g", min=3), *members("g", 3))
        assert w.facts() == before and w.bound() == set()
        assert not list(w.stage.scheduler.waiting_pods)
        assert w.queue.size(SubQueue.IN_FLIGHT) == 0, "everybody is back in the queue"
        monkeypatch.setattr(Failing, "at", "")
        await w.after(120)
        assert w.bound() == {"g-0", "g-1", "g-2"}


async def test_an_unreserve_that_raises_frees_the_place_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failing, "at", "unreserve")
    async with world(Failing) as w:
        await w.apply(node("a", cpu=3), group("g", min=4))
        before = w.facts()
        await w.apply(*members("g", 4))
        assert w.facts() == before and w.bound() == set()


class Searching(Plugin, PodGroupPostFilter):
    """Is cut short, or breaks, where it looks for a way out."""

    error: ClassVar[BaseException | None] = None

    def pod_group_post_filter(self, attempt: GroupAttempt) -> Rejection:
        attempt.search_victims()
        if self.error is not None:
            raise self.error
        return Reject(Reason("NoWay", "no way out"))


@pytest.mark.parametrize("error", [RuntimeError("out of order"), BudgetExceeded(2.0, 0.5)], ids=["raises", "budget"])
async def test_a_search_for_a_way_out_that_is_cut_short_loses_no_one(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Searching, "error", error)
    async with world(Searching) as w:
        await w.apply(node("a", cpu=2), pod("low", cpu=2, node="a"), group("g", min=2, priority=9))
        before = w.facts()
        await w.apply(*members("g", 2, priority=9, cpu=2))
        assert w.facts() == before and w.queue.size(SubQueue.IN_FLIGHT) == 0
        monkeypatch.setattr(Searching, "error", None)
        await w.apply(node("b", cpu=2), node("c", cpu=2))
        await w.after(60)
        assert {"g-0", "g-1"} <= w.bound()


class RejectsOne(Plugin, Permit):
    """Has something against one member; lets the others wait for a day."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        return Reject(Reason("NotYou", "not this one")) if pod.name == "g-2" else None


async def test_siblings_of_a_rejected_member_do_not_wait_for_it_on_their_nodes() -> None:
    async with world(RejectsOne) as w:
        await w.apply(node("a", cpu=4), group("g", min=3), *members("g", 3))
        assert not list(w.stage.scheduler.waiting_pods)
        await w.apply(pod("other", cpu=4))
        assert w.bound() == {"other"}, "the room is free at once, not after five minutes"


# --- extenders --------------------------------------------------------------------------------------------------------


async def test_extenders_are_asked_about_each_member_and_heeded() -> None:
    async with world(config=EXTENDER) as w:
        keep = {"keep": ["b", "c"], "failed": {"a": "not here"}}
        w.extenders.play({"http://e1": {"filter": [keep], "prioritize": [{"scores": {"b": 1, "c": 10}}]}})
        await w.apply(node("a", cpu=9), node("b", cpu=4), node("c", cpu=2), group("g", min=3), *members("g", 3))
        asked = [(r.verb, r.body["Pod"]["metadata"]["name"]) for r in w.extenders.requests]
        assert asked == [(verb, f"g-{n}") for n in range(3) for verb in ("filter", "prioritize")]
        assert [w.node_of(f"g-{n}") for n in range(3)] == ["c", "c", "b"], "c is better, and full after two"


async def test_members_wait_for_the_answer_and_other_pods_do_not() -> None:
    managed = {**EXTENDER["extenders"][0], "managedResources": [{"name": "example.com/gpu"}]}
    async with world(config={"extenders": [managed]}) as w:
        w.extenders.play({"http://e1": {"filter": [{"keep": ["a"], "delay": 2}], "prioritize": [{"scores": {}}]}})
        gpus = {"extended": {"example.com/gpu": 1}}
        await w.apply(node("a", cpu=8, extended={"example.com/gpu": 4}), group("g", min=2), *members("g", 2, **gpus))
        await w.apply(pod("plain"))
        assert w.bound() == {"plain"}
        assert w.facts()["a"][1] == 1, "a group that is asked about holds nothing"  # type: ignore[index]
        await w.remove("g-0")
        await w.apply(pod("g-9", group="g", **gpus))
        await w.after(30)
        assert w.bound() == {"plain", "g-1", "g-9"}, "who left meanwhile is dropped, who came joins"


async def test_a_report_says_whose_answer_a_group_waits_for() -> None:
    async with world(config=EXTENDER) as w:
        w.extenders.play({"http://e1": {"filter": [{"keep": ["a"], "delay": 2}], "prioritize": [{"scores": {}}]}})
        await w.apply(node("a", cpu=8), group("g", min=2), *members("g", 2))
        report = scheduler_report(w.stage.scheduler, Selection())
        assert [(one.name, one.asked) for one in report.in_flight] == [("g-0", ("http://e1",)), ("g-1", ("http://e1",))]
        place = group_place(report, "default/g")
        assert place is not None and place.place == "in flight"
        assert "waits for the answer of: http://e1" in list(queue_lines(place))
        await w.after(30)
        assert group_place(scheduler_report(w.stage.scheduler, Selection()), "default/g") is None


async def test_an_extender_that_fails_fails_the_group() -> None:
    async with world(config=EXTENDER) as w:
        w.extenders.play({"http://e1": {"filter": [{"keep": ["a"]}, {"status": 500}]}})
        await w.apply(node("a", cpu=8), group("g", min=2), *members("g", 2))
        assert w.bound() == set() and "code 500" in w.message("g-1")
        assert w.facts()["a"][1] == 0  # type: ignore[index]


async def test_no_one_is_evicted_from_a_node_that_an_extender_does_not_want() -> None:
    async with world(config=EXTENDER) as w:
        keep = {"keep": ["b"], "failed": {"a": "not here"}}
        w.extenders.play({"http://e1": {"filter": [{"keep": ["a", "b"]}], "prioritize": [{"scores": {}}]}})
        await w.apply(node("a", cpu=2), node("b", cpu=2))
        await w.apply(*(pod(f"low-{n}", cpu=2, node=name) for n, name in enumerate("ab")))
        w.extenders.play({"http://e1": {"filter": [keep], "prioritize": [{"scores": {}}]}})
        await w.apply(group("g", min=2, priority=9), *members("g", 2, priority=9))
        await w.after(30)
        assert [w.node_of("g-0"), w.node_of("g-1")] == ["b", "b"]
        assert "default/low-0" in w.cluster.objects("Pod"), "only who stands where the group may go"


# --- devices ----------------------------------------------------------------------------------------------------------


async def test_siblings_share_a_claim_and_one_whose_binding_fails_follows_it() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=8), node("b", cpu=8), {"deviceClass": {"name": "gpu"}})
        await w.apply({"slice": {"name": "s", "driver": "gpu.example.com", "node": "b", "devices": ["g0"]}})
        await w.apply({"claim": {"name": "card", "class": "gpu"}}, group("g", min=3))
        w.stage.api.faults.append(Fault("bind", pod="g-0", code=500, times=1))
        await w.apply(*members("g", 3, claims=["card"]))
        await w.after(60)
        assert [w.node_of(f"g-{number}") for number in range(3)] == ["b", "b", "b"]
        claim = w.stage.api.last_known(("ResourceClaim", "default", "card"))
        users = {user["name"] for user in claim["status"]["reservedFor"]}
        assert users == {"g-0", "g-1", "g-2"} and len(claim["status"]["allocation"]["devices"]["results"]) == 1


async def test_a_group_that_does_not_fit_leaves_no_device_behind() -> None:
    async with world() as w:
        await w.apply(node("b", cpu=2), {"deviceClass": {"name": "gpu"}})
        await w.apply({"slice": {"name": "s", "driver": "gpu.example.com", "node": "b", "devices": ["g0"]}})
        await w.apply({"claim": {"name": "card", "class": "gpu"}}, {"claim": {"name": "other", "class": "gpu"}})
        await w.apply(group("g", min=3), *members("g", 3, claims=["card"]), pod("single", claims=["other"]))
        await w.after(10)
        assert w.bound() == {"single"}, "the device was free"


# --- what a waiting gang costs ----------------------------------------------------------------------------------------


class Counting(Plugin, PreEnqueue):
    """Counts how often it is asked."""

    asked = 0

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        type(self).asked += 1
        return None


async def test_a_member_is_told_of_the_nodes_of_the_first_placement_and_of_no_others() -> None:
    async with world() as w:
        racks = [node(f"{rack}-{number}", cpu=2, labels={"rack": rack}) for rack in ("r1", "r2") for number in (1, 2)]
        await w.apply(*racks, node("other", cpu=9), group("g", min=3, topology="rack"), *members("g", 3, cpu=2))
        told = w.stage.api.last_known(("Pod", "default", "g-2"))["status"]["conditions"]
        assert [one["message"] for one in told] == ["0/2 nodes are available: 2 Insufficient cpu."]


@pytest.mark.parametrize("size", [10, 40])
async def test_pre_enqueue_is_asked_a_few_times_per_member_however_large_the_gang(size: int) -> None:
    Counting.asked = 0
    async with world(Counting) as w:
        await w.apply(node("a", cpu=100), group("g", min=size))
        for one in members("g", size):
            await w.apply(one)
        assert len(w.bound()) == size
        assert Counting.asked <= 3 * size


async def test_a_member_that_leaves_does_not_count_any_more_when_the_gate_is_asked() -> None:
    async with world() as w:
        w.stage.pause()
        await w.apply(node("a", cpu=4), group("g", min=3), *members("g", 3))
        await w.remove("g-1")
        entry = w.queue.group("default/g")
        assert entry is not None and entry.home is SubQueue.GATED and entry.attempts == 0
        w.stage.resume()
        await w.apply(pod("g-9", group="g"))
        assert w.bound() == {"g-0", "g-2", "g-9"}


@pytest.mark.parametrize("state", ["gated", "backing off"])
async def test_a_waiting_gang_costs_nothing_for_events_that_cannot_help_it(state: str) -> None:
    """Counted are the calls that a pod causes which comes, is bound and goes."""
    few, many = [await _calls_of_an_event(state, gangs) for gangs in (1, 60)]
    assert many <= few * 1.05 + 20, (few, many)


async def _calls_of_an_event(state: str, gangs: int) -> int:
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    async with world() as w:
        await w.apply(node("a", cpu=4))
        for number in range(gangs):
            name, needed = f"gang-{number}", 5 if state == "gated" else 2
            await w.apply(group(name, min=needed), *members(name, 2, cpu=3))
        await w.apply(pod("warm-up"))
        await w.remove("warm-up")
        sys.setprofile(count)
        try:
            w.stage.api.add(full_object(pod("other")))
            await w.stage.clock.settle()
            w.stage.api.remove(("Pod", "default", "other"))
            await w.stage.clock.settle()
        finally:
            sys.setprofile(None)
    return calls


async def test_a_group_of_a_composite_group_is_told_that_it_is_scheduled_by_itself() -> None:
    async with world() as w:
        short = full_object(group("g", min=1))
        w.stage.api.add({**short, "spec": {**short["spec"], "parentCompositePodGroupName": "all-of-it"}})
        await w.apply(node("a", cpu=1), *members("g", 2))
        await w.after(30)
        assert w.bound() == {"g-0"}
        told = [name for name, reason in w.stage.api.events if reason == "FieldNotServed"]
        assert told == ["g"], "once"


async def test_a_group_that_preempts_takes_the_nominations_of_less_important_pods_away() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=2), pod("old", cpu=2, node="a"), pod("middle", priority=5, gates=["later"]))
        w.cluster.nominations.nominate(w.pod("middle"), "a")
        await w.apply(group("g", min=2, priority=9), *members("g", 2, priority=9))
        assert not w.cluster.objects("Pod").get("default/old")
        assert {one.name for one in w.cluster.nominations.on("a")} <= {"g-0", "g-1"}


async def test_a_large_gang_costs_what_its_members_cost() -> None:
    """Counted in calls from the first member that comes to the last one that is bound."""
    small, large = [await _calls_of_a_gang(size) for size in (20, 160)]
    assert large <= small * 8 * 1.5, (small, large)


async def _calls_of_a_gang(size: int) -> int:
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    async with world() as w:
        await w.apply(*(node(f"n{number}", cpu=32) for number in range(8)), group("g", min=size))
        sys.setprofile(count)
        try:
            for one in members("g", size):
                w.stage.api.add(full_object(one))
                await w.stage.clock.settle()
        finally:
            sys.setprofile(None)
        assert len(w.bound()) == size
    return calls
