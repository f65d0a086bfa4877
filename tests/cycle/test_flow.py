"""The exact order of all calls to plugins, for each way that an attempt can go (KEP-624, "Scheduling cycle")."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import NodeNames, Pending, PreFlight, Reason, Reject, Skip, Wait
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import LiveScheduler
from tests.cycle.recording_plugins import NOMINATED, A, recorded

NO = Reject(Reason("No", "not today"))
NEVER = Reject(Reason("Never", "not ever", unresolvable=True))
BOOM = RuntimeError("boom")
SKIP: Any = Skip()

ENQUEUE = ["A.pre_enqueue", "B.pre_enqueue"]
PRE_FILTER = ["A.pre_filter", "B.pre_filter"]
FILTER = ["A.filter a", "B.filter a"]
RESERVE = ["A.reserve", "B.reserve"]
PERMIT = ["A.permit", "B.permit"]
BACKOFF = ENQUEUE
"""A pod that goes into backoff after an error passes the gates on its way."""
UNRESERVE = ["B.unreserve", "A.unreserve"]
PRE_FLIGHT = ["A.pre_flight", "B.pre_flight"]
PRE_BIND = [*PRE_FLIGHT, "A.pre_bind", "B.pre_bind"]
POST_BIND = ["A.post_bind", "B.post_bind"]
TO_PERMIT = [*ENQUEUE, *PRE_FILTER, *FILTER, *RESERVE, *PERMIT]


async def calls_on_one_node(**script: Any) -> tuple[list[str], LiveScheduler]:
    """What is called for one pod on one node without time passing."""
    async with recorded(**script) as (world, calls):
        await world.put(node("a"), pod("p"))
        return list(calls), world


# --- success ----------------------------------------------------------------------------------------------------------


async def test_one_feasible_node_is_taken_without_scoring() -> None:
    calls, world = await calls_on_one_node()
    assert calls == [*TO_PERMIT, *PRE_BIND, "A.bind", *POST_BIND]
    assert world.node_of("p") == "a"


async def test_several_feasible_nodes_are_scored_plugin_by_plugin() -> None:
    async with recorded() as (world, calls):
        await world.put(node("a"), node("b"), pod("p"))
        assert calls == [
            *ENQUEUE,
            *PRE_FILTER,
            *["A.filter a", "A.filter b", "B.filter a", "B.filter b"],
            *["A.pre_score", "B.pre_score"],
            *["A.score a", "A.score b", "A.normalize", "B.score a", "B.score b", "B.normalize"],
            *[*RESERVE, *PERMIT, *PRE_BIND, "A.bind", *POST_BIND],
        ]


async def test_a_plugin_that_skips_is_left_out_of_its_later_points() -> None:
    async with recorded(A_pre_filter=SKIP, B_pre_score=SKIP, A_pre_flight=SKIP) as (world, calls):
        await world.put(node("a"), node("b"), pod("p"))
        assert calls[2:4] == PRE_FILTER
        assert [call for call in calls if ".filter" in call] == ["B.filter a", "B.filter b"]
        assert [call for call in calls if "score" in call] == ["A.pre_score", "B.pre_score", "A.score a", "A.score b"]
        assert [call for call in calls if "pre_bind" in call] == ["B.pre_bind"]


async def test_nodes_that_pre_filter_leaves_out_are_not_filtered() -> None:
    async with recorded(A_pre_filter=NodeNames(frozenset({"b"}))) as (world, calls):
        await world.put(node("a"), node("b"), pod("p"))
        assert [call for call in calls if ".filter" in call] == ["A.filter b", "B.filter b"]
        assert world.node_of("p") == "b"


# --- rejections in the scheduling cycle -------------------------------------------------------------------------------


async def test_a_gated_pod_reaches_no_one_behind_the_gate() -> None:
    calls, world = await calls_on_one_node(A_pre_enqueue=NO)
    assert calls == ["A.pre_enqueue"]
    assert world.queue.size(SubQueue.GATED) == 1


async def test_an_error_at_the_gate_gates_too() -> None:
    calls, world = await calls_on_one_node(A_pre_enqueue=BOOM)
    assert calls == ["A.pre_enqueue"] and world.queue.size(SubQueue.GATED) == 1


@pytest.mark.parametrize(
    ("answer", "asked"),
    [(NEVER, ["A.pre_filter"]), (NO, PRE_FILTER)],
    ids=["unresolvable stops at once", "resolvable lets the others go on"],
)
async def test_a_rejection_by_pre_filter_leads_to_post_filter(answer: Reject, asked: list[str]) -> None:
    calls, world = await calls_on_one_node(A_pre_filter=answer)
    assert calls == [*ENQUEUE, *asked, "A.post_filter", "B.post_filter"]
    assert world.condition("p")[1] == "Unschedulable" and world.queue.size(SubQueue.UNSCHEDULABLE) == 1


@pytest.mark.parametrize("answer", [BOOM, Pending(Reason("Later", "later"))], ids=["raises", "answers Pending"])
async def test_an_error_in_pre_filter_ends_the_cycle(answer: Any) -> None:
    calls, world = await calls_on_one_node(A_pre_filter=answer)
    assert calls == [*ENQUEUE, "A.pre_filter", *BACKOFF]
    assert world.condition("p")[1] == "SchedulerError" and world.queue.size(SubQueue.ERROR_BACKOFF) == 1


@pytest.mark.parametrize("answer", [NO, NEVER, Pending(Reason("Later", "later"))], ids=["no", "never", "pending"])
async def test_the_first_filter_that_rejects_is_the_last_one_asked(answer: Any) -> None:
    calls, world = await calls_on_one_node(A_filter=answer)
    # The node is asked about once more for the diagnosis.
    assert list(dict.fromkeys(calls)) == [*ENQUEUE, *PRE_FILTER, "A.filter a", "A.post_filter", "B.post_filter"]
    assert world.condition("p")[1] == "Unschedulable" and world.queue.size(SubQueue.UNSCHEDULABLE) == 1


async def test_a_node_rejected_by_the_first_filter_is_not_shown_to_the_second() -> None:
    async with recorded(B_filter=NO) as (world, calls):
        await world.put(node("a"), pod("p"))
        assert list(dict.fromkeys(calls))[4:] == [*FILTER, "A.post_filter", "B.post_filter"]


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (NOMINATED, ["A.post_filter"]),
        (NEVER, ["A.post_filter"]),
        (BOOM, ["A.post_filter"]),
        (NO, ["A.post_filter", "B.post_filter"]),
    ],
    ids=["finds a way", "knows that nothing helps", "raises", "cannot help"],
)
async def test_post_filter_stops_at_the_first_that_knows(answer: Any, asked: list[str]) -> None:
    calls, world = await calls_on_one_node(A_filter=NO, A_post_filter=answer)
    assert [call for call in calls if "post_filter" in call] == asked
    assert world.condition("p")[1] == "Unschedulable"


async def test_an_error_while_scoring_reserves_nothing() -> None:
    async with recorded(A_score=BOOM) as (world, calls):
        await world.put(node("a"), node("b"), pod("p"))
        assert calls[-3:] == ["A.score a", *BACKOFF] and world.queue.size(SubQueue.ERROR_BACKOFF) == 1


@pytest.mark.parametrize(
    ("who", "asked"), [("A_reserve", ["A.reserve"]), ("B_reserve", RESERVE)], ids=["the first", "the second"]
)
@pytest.mark.parametrize("answer", [NO, BOOM], ids=["rejects", "raises"])
async def test_a_failed_reservation_is_given_back_by_all_in_reverse(who: str, asked: list[str], answer: Any) -> None:
    calls, world = await calls_on_one_node(**{who: answer})
    assert calls == [*ENQUEUE, *PRE_FILTER, *FILTER, *asked, *UNRESERVE, *(BACKOFF if answer is BOOM else [])]
    assert world.node_of("p") == "" and world.cluster.nodes.pod_count.tolist() == [0]


async def test_one_that_cannot_unreserve_does_not_keep_the_others_from_it() -> None:
    calls, _ = await calls_on_one_node(B_reserve=NO, B_unreserve=BOOM)
    assert calls[-2:] == UNRESERVE


@pytest.mark.parametrize("answer", [NO, BOOM, SKIP], ids=["rejects", "raises", "answers nonsense"])
async def test_a_rejected_permission_stops_and_unreserves(answer: Any) -> None:
    calls, world = await calls_on_one_node(A_permit=answer)
    home, after = (SubQueue.UNSCHEDULABLE, []) if answer is NO else (SubQueue.ERROR_BACKOFF, BACKOFF)
    assert calls == [*ENQUEUE, *PRE_FILTER, *FILTER, *RESERVE, "A.permit", *UNRESERVE, *after]
    assert world.queue.size(home) == 1


async def test_a_rejection_after_a_wait_is_final() -> None:
    calls, _ = await calls_on_one_node(A_permit=Wait(60), B_permit=NO)
    assert calls == [*TO_PERMIT, *UNRESERVE]


# --- waiting for permission -------------------------------------------------------------------------------------------


async def test_a_pod_that_waits_is_bound_when_everyone_has_allowed_it() -> None:
    async with recorded(A_permit=Wait(60), B_permit=Wait(30)) as (world, calls):
        await world.put(node("a"), pod("p"))
        assert calls == [*TO_PERMIT, *PRE_FLIGHT]
        (held,) = A.handle.waiting_pods
        held.allow("B")
        await world.after(45)
        assert calls == [*TO_PERMIT, *PRE_FLIGHT]
        held.allow("A")
        await world.settle()
        assert calls == [*TO_PERMIT, *PRE_BIND, "A.bind", *POST_BIND] and world.node_of("p") == "a"


async def test_a_pod_that_is_rejected_while_it_waits_is_unreserved() -> None:
    async with recorded(A_permit=Wait(60)) as (world, calls):
        await world.put(node("a"), pod("p"))
        (held,) = A.handle.waiting_pods
        assert held.reject("A", "changed my mind") and not held.reject("A", "again")
        await world.settle()
        assert calls == [*TO_PERMIT, *PRE_FLIGHT, *UNRESERVE]
        assert "changed my mind" in world.condition("p")[2] and world.queue.size(SubQueue.UNSCHEDULABLE) == 1


async def test_the_shortest_time_out_rejects() -> None:
    async with recorded(A_permit=Wait(60), B_permit=Wait(30)) as (world, calls):
        await world.put(node("a"), pod("p"))
        await world.after(31)
        assert calls == [*TO_PERMIT, *PRE_FLIGHT, *UNRESERVE]
        assert "rejected due to timeout after waiting 30s at plugin B" in world.condition("p")[2]


# --- the binding cycle ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [NO, BOOM], ids=["rejects", "raises"])
async def test_a_failed_pre_bind_ends_the_binding(answer: Any) -> None:
    calls, world = await calls_on_one_node(A_pre_bind=answer)
    assert calls == [*TO_PERMIT, "A.pre_flight", "B.pre_flight", "A.pre_bind", *UNRESERVE, *BACKOFF]
    assert world.queue.size(SubQueue.ERROR_BACKOFF) == 1
    assert world.condition("p")[1] == ("Unschedulable" if answer is NO else "SchedulerError")


async def test_pre_bind_plugins_that_allow_it_run_side_by_side() -> None:
    beside = PreFlight(allow_parallel=True)
    calls, world = await calls_on_one_node(A_pre_flight=beside, B_pre_flight=beside)
    assert calls == [*TO_PERMIT, *PRE_BIND, "A.bind", *POST_BIND] and world.node_of("p") == "a"


async def test_a_binder_that_skips_leaves_the_pod_to_the_next() -> None:
    calls, world = await calls_on_one_node(A_bind=SKIP)
    assert calls == [*TO_PERMIT, *PRE_BIND, "A.bind", "B.bind", *POST_BIND] and world.node_of("p") == "a"


async def test_a_pod_that_every_binder_skips_is_not_bound() -> None:
    calls, world = await calls_on_one_node(A_bind=SKIP, B_bind=SKIP)
    assert calls == [*TO_PERMIT, *PRE_BIND, "A.bind", "B.bind", *UNRESERVE, *BACKOFF]
    assert world.queue.size(SubQueue.ERROR_BACKOFF) == 1


@pytest.mark.parametrize("answer", [NO, BOOM], ids=["rejects", "raises"])
async def test_a_failed_binding_unreserves_and_no_one_is_told_of_success(answer: Any) -> None:
    calls, world = await calls_on_one_node(A_bind=answer)
    assert calls == [*TO_PERMIT, *PRE_BIND, "A.bind", *UNRESERVE, *BACKOFF]
    assert world.node_of("p") == "" and world.queue.size(SubQueue.ERROR_BACKOFF) == 1


async def test_an_error_after_binding_does_not_undo_it() -> None:
    calls, world = await calls_on_one_node(A_post_bind=BOOM)
    assert calls == [*TO_PERMIT, *PRE_BIND, "A.bind", *POST_BIND] and world.node_of("p") == "a"
    assert len(list(world.queue.entries())) == 0
