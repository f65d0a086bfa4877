"""What moves waiting pods: events and hints, missed events, gates, activation, the flush of unschedulable pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilotage.api import Action, ClusterEvent, Hint, Resource
from pilotage.api.events import wildcard
from pilotage.model import Pod
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import node, pod
from tests.queue.waiting_room import (
    NODE_ADDED,
    NODE_LABEL,
    OWN_LABEL,
    POD_GONE,
    WaitingRoom,
    always,
    judge,
    never,
)

GATES_GONE = ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def broken(pod: Pod, old: Any, new: Any) -> Hint:
    raise RuntimeError("hint is broken")


# --- events and hints -------------------------------------------------------------------------------------------------


def test_an_event_moves_the_pods_that_its_judge_says_it_helps() -> None:
    wanted = judge("Fit", lambda p, old, new: Hint.QUEUE if p.name == "helped" else Hint.SKIP)
    room = WaitingRoom(wanted)
    helped = room.add_rejected(pod("helped").label("a", "1"), "Fit")
    left = room.add_rejected(pod("left").label("a", "2"), "Fit")
    assert room.event() == 1
    assert (room.home(helped), room.home(left)) == (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE)


def test_the_judge_sees_the_objects_of_the_event() -> None:
    seen: list[tuple[str, Any, Any]] = []

    def note(p: Pod, old: Any, new: Any) -> Hint:
        seen.append((p.name, old, new))
        return Hint.SKIP

    room = WaitingRoom(judge("Fit", note))
    room.add_rejected(pod("p"), "Fit")
    new = node("n").build()
    room.event(NODE_ADDED, None, new)
    assert seen == [("p", None, new)]


def test_an_event_that_no_one_registered_moves_nothing() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    assert room.event(POD_GONE) == 0 and room.home(uid) is SubQueue.UNSCHEDULABLE


def test_only_judges_that_rejected_the_pod_are_asked() -> None:
    room = WaitingRoom(judge("Fit", never), judge("Taint", always))
    uid = room.add_rejected(pod("p"), "Fit")
    assert room.event() == 0
    both = room.add_rejected(pod("q"), "Fit", "Taint")
    assert room.event() == 1
    assert (room.home(uid), room.home(both)) == (SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF)


def test_a_judge_of_another_profile_is_not_asked() -> None:
    room = WaitingRoom(judge("Fit", never), others={"other": [judge("Fit", always)]})
    mine = room.add_rejected(pod("p"), "Fit")
    theirs = room.add_rejected(pod("q").scheduler("other"), "Fit")
    room.event()
    assert (room.home(mine), room.home(theirs)) == (SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF)


def test_a_hint_that_raises_counts_as_queue_and_is_counted() -> None:
    room = WaitingRoom(judge("Fit", broken))
    uid = room.add_rejected(pod("p"), "Fit")
    assert room.event() == 1
    assert room.home(uid) is SubQueue.BACKOFF and room.metrics.queueing_hint_errors_total.values() == {("Fit",): 1}


def test_the_event_that_a_pending_plugin_waited_for_skips_the_backoff() -> None:
    room = WaitingRoom(judge("Claims", always, NODE_LABEL), judge("Fit", always, NODE_ADDED))
    uid = room.add_rejected(pod("p"), "Fit", pending=["Claims"])
    room.event(NODE_LABEL)
    assert room.home(uid) is SubQueue.ACTIVE
    other = room.add_rejected(pod("q").priority(1), "Fit", pending=["Claims"])
    room.event(NODE_ADDED)
    assert room.home(other) is SubQueue.BACKOFF


def test_the_better_of_two_answers_to_one_event_counts() -> None:
    room = WaitingRoom(judge("Fit"), judge("Claims"))
    uid = room.add_rejected(pod("p"), "Fit", pending=["Claims"])
    room.event()
    assert room.home(uid) is SubQueue.ACTIVE


def test_a_pending_plugin_is_a_rejector_too() -> None:
    room = WaitingRoom(judge("Claims"))
    uid = room.add_rejected(pod("p"), pending=["Claims"])
    entry = room.queue.entry(uid)
    assert (entry.home, entry.unschedulable_count) == (SubQueue.UNSCHEDULABLE, 1)
    assert entry.rejectors == {"Claims"}


def test_a_wildcard_event_concerns_every_waiting_pod() -> None:
    room = WaitingRoom()
    uids = [room.add_rejected(pod(name), "Fit") for name in ("p", "q")]
    assert room.event(wildcard("Everything")) == 2
    assert [room.home(uid) for uid in uids] == [SubQueue.BACKOFF, SubQueue.BACKOFF]


def test_a_wildcard_event_about_one_pod_concerns_only_that_pod() -> None:
    room = WaitingRoom()
    uids = [room.add_rejected(pod(name), "Fit") for name in ("p", "q")]
    assert room.event(wildcard("Activate"), None, pod("q").build()) == 1
    assert [room.home(uid) for uid in uids] == [SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF]


# --- events while a pod is in flight ----------------------------------------------------------------------------------


def test_an_event_during_the_attempt_is_replayed_on_return() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("p"))
    ticket = room.pop()
    room.event()
    assert room.reject(ticket, "Fit") is SubQueue.BACKOFF


def test_an_event_before_the_attempt_is_not() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("p"))
    room.event()
    assert room.reject(room.pop(), "Fit") is SubQueue.UNSCHEDULABLE


def test_an_event_that_does_not_concern_the_rejector_is_not() -> None:
    room = WaitingRoom(judge("Fit", never), judge("Taint"))
    room.add(pod("p"))
    ticket = room.pop()
    room.event()
    assert room.reject(ticket, "Fit") is SubQueue.UNSCHEDULABLE


def test_the_best_of_the_missed_events_counts() -> None:
    room = WaitingRoom(judge("Claims", always, NODE_LABEL), judge("Fit", always, NODE_ADDED))
    room.add(pod("p"))
    ticket = room.pop()
    room.event(NODE_ADDED)
    room.event(NODE_LABEL)
    assert room.reject(ticket, "Fit", pending=["Claims"]) is SubQueue.ACTIVE


def test_events_that_no_plugin_wants_are_not_kept() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("p"))
    room.pop()
    room.event(POD_GONE)
    assert room.queue.recorded_events == 0


def test_the_update_of_one_pod_in_flight_does_not_concern_the_others() -> None:
    room = WaitingRoom(judge("Own", always, OWN_LABEL))
    room.add(pod("a"), pod("b"))
    first, second = room.pop(), room.pop()
    changed = pod("b").label("changed", "yes").build()
    room.queue.update(changed, [OWN_LABEL], second.pod)
    assert room.reject(first, "Own") is SubQueue.UNSCHEDULABLE
    assert room.reject(second, "Own", pod=changed) is SubQueue.BACKOFF


def test_events_are_freed_with_the_oldest_ticket() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("a"), pod("b"))
    first = room.pop()
    room.event()
    second = room.pop()
    room.event()
    assert room.queue.recorded_events == 2
    room.queue.done(second)
    assert room.queue.recorded_events == 2
    room.queue.done(first)
    assert room.queue.recorded_events == 0


def test_a_missed_event_helps_an_errored_pod_no_sooner() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("p"))
    ticket = room.pop()
    room.event()
    assert room.reject(ticket) is SubQueue.ERROR_BACKOFF


# --- gates ------------------------------------------------------------------------------------------------------------


def gated_room() -> tuple[WaitingRoom, str]:
    room = WaitingRoom(judge("Gate", always, GATES_GONE), judge("Gate", never, NODE_LABEL), judge("Fit"))
    room.gates["p"] = "Gate"
    room.add(pod("p"))
    room.asked_at_the_gate.clear()
    return room, pod("p").build().uid


def test_a_gated_pod_does_not_enter_the_queue() -> None:
    room, uid = gated_room()
    assert room.home(uid) is SubQueue.GATED and room.queue.pop() is None
    entry = room.queue.entry(uid)
    assert (entry.gated_by, entry.gate_message, entry.rejectors) == ("Gate", "held by Gate", {"Gate"})


def test_a_gated_pod_ignores_events_that_its_gate_did_not_register_for() -> None:
    room, uid = gated_room()
    room.queue.entry(uid).rejectors |= {"Fit"}
    room.gates.clear()
    assert room.event(NODE_ADDED) == 0
    assert room.home(uid) is SubQueue.GATED and room.asked_at_the_gate == []


def test_a_gated_pod_reacts_to_an_event_of_its_gate() -> None:
    room, uid = gated_room()
    room.queue.update(pod("p").build(), [GATES_GONE], pod("p").gate("g").build())
    assert room.home(uid) is SubQueue.GATED and room.asked_at_the_gate == ["p"]
    room.gates.clear()
    room.queue.update(pod("p").build(), [GATES_GONE], pod("p").gate("g").build())
    room.queue.check()
    assert room.home(uid) is SubQueue.ACTIVE
    assert room.queue.entry(uid).gated_by == "" and room.queue.entry(uid).gate_message == ""


def test_an_update_that_its_gate_does_not_care_for_wakes_no_one() -> None:
    room, uid = gated_room()
    room.gates.clear()
    room.queue.update(pod("p").gate("b").build(), [OWN_LABEL], pod("p").gate("a").gate("b").build())
    assert room.home(uid) is SubQueue.GATED


def test_a_gated_pod_is_swept_and_asked_at_the_gate_again() -> None:
    room, uid = gated_room()
    room.clock.now += 301
    assert room.queue.flush_unschedulable() == 1
    assert room.home(uid) is SubQueue.GATED and room.asked_at_the_gate == ["p"]
    assert not room.queue.entry(uid).was_flushed
    room.gates.clear()
    room.clock.now += 301
    room.queue.flush_unschedulable()
    assert room.home(uid) is SubQueue.ACTIVE


def test_a_pod_may_be_gated_on_its_way_into_backoff() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    room.gates["p"] = "Gate"
    room.event()
    assert room.home(uid) is SubQueue.GATED
    assert room.queue.entry(uid).rejectors == {"Fit", "Gate"}


def test_the_gate_stays_a_rejector_until_the_next_failed_attempt() -> None:
    room, uid = gated_room()
    room.gates.clear()
    room.queue.activate([uid])
    assert room.queue.entry(uid).rejectors == {"Gate"}
    room.reject(room.pop(), "Fit")
    assert room.queue.entry(uid).rejectors == {"Fit"}


# --- activation -------------------------------------------------------------------------------------------------------


def unschedulable(room: WaitingRoom) -> None:
    room.add_rejected(pod("p"), "Fit")


def backoff(room: WaitingRoom) -> None:
    room.add_rejected(pod("p"), "Fit")
    room.event()


def error_backoff(room: WaitingRoom) -> None:
    room.add_rejected(pod("p"))


def active(room: WaitingRoom) -> None:
    room.add(pod("p"))


@pytest.mark.parametrize("fill", [unschedulable, backoff, error_backoff, active])
def test_activation_makes_a_waiting_pod_active_whatever_its_backoff(fill: Callable[[WaitingRoom], None]) -> None:
    room = WaitingRoom(judge("Fit"))
    fill(room)
    room.queue.activate([pod("p").build().uid, "nobody"])
    room.queue.check()
    assert room.queue.size(SubQueue.ACTIVE) == 1 and room.pop_all() == ["p"]


def test_a_gated_pod_can_not_be_activated() -> None:
    room, uid = gated_room()
    room.queue.activate([uid])
    assert room.home(uid) is SubQueue.GATED


def test_activation_of_a_pod_in_flight_counts_when_it_returns_and_for_it_alone() -> None:
    room = WaitingRoom(judge("Fit", never))
    room.add(pod("a"), pod("b"))
    first, second = room.pop(), room.pop()
    room.queue.activate([first.uid])
    assert room.reject(second, "Fit") is SubQueue.UNSCHEDULABLE
    assert room.reject(first, "Fit") is SubQueue.BACKOFF
    assert room.queue.recorded_events == 0


# --- the sweep --------------------------------------------------------------------------------------------------------


def test_a_pod_that_nothing_woke_is_swept_after_more_than_five_minutes() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    room.clock.now += 300
    assert room.queue.flush_unschedulable() == 0
    room.clock.now += 1
    assert room.queue.flush_unschedulable() == 1
    assert room.home(uid) is SubQueue.ACTIVE and room.queue.entry(uid).was_flushed
    room.queue.check()


def test_a_failed_attempt_after_a_flush_starts_the_wait_anew() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    room.clock.now += 301
    room.queue.flush_unschedulable()
    room.reject(room.pop(), "Fit")
    assert not room.queue.entry(uid).was_flushed
    room.clock.now += 300
    assert room.queue.flush_unschedulable() == 0


def test_a_second_flush_is_measured_from_the_first() -> None:
    room, uid = gated_room()
    room.clock.now += 301
    assert room.queue.flush_unschedulable() == 1
    room.clock.now += 300
    assert room.queue.flush_unschedulable() == 0
    room.clock.now += 1
    assert room.queue.flush_unschedulable() == 1
    assert room.home(uid) is SubQueue.GATED


# --- nominations and pods past Permit ---------------------------------------------------------------------------------


def test_an_event_may_be_meant_for_pods_up_to_a_priority_only() -> None:
    room = WaitingRoom(judge("Fit"))
    uids = [room.add_rejected(pod(f"p{priority}").priority(priority), "Fit") for priority in (3, 7, 9)]
    assert room.queue.on_event(NODE_ADDED, None, None, up_to_priority=7) == 2
    assert [room.home(uid) for uid in uids] == [SubQueue.BACKOFF, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE]


def test_events_are_not_kept_for_a_pod_that_no_one_can_reject_any_more() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("p"))
    ticket = room.pop()
    room.event()
    room.queue.needs_no_events(ticket)
    assert room.queue.recorded_events == 0 and room.queue.is_binding(ticket)
    assert room.home(ticket.uid) is SubQueue.IN_FLIGHT
    assert room.reject(ticket) is SubQueue.ERROR_BACKOFF


def test_a_pod_is_not_stranded_if_it_is_rejected_although_nothing_was_kept_for_it() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("p"))
    ticket = room.pop()
    room.queue.needs_no_events(ticket)
    room.event()
    assert room.reject(ticket, "Fit") is SubQueue.BACKOFF


def test_activation_out_of_backoff_does_not_ask_at_the_gate_again() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    room.event()
    room.gates["p"] = "Gate"
    room.queue.activate([uid])
    assert room.home(uid) is SubQueue.ACTIVE


def test_every_move_is_reported_with_what_caused_it() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    room.event()
    room.after(2)
    room.reject(room.pop(), "Fit")
    room.event()
    room.reject(room.pop())
    room.queue.activate([uid])
    assert room.moves == [
        ("active", "UnscheduledPodAdd"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "NodeAdd"),
        ("active", "BackoffComplete"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "NodeAdd"),
        ("active", "PopFromBackoffQ"),
        ("error backoff", "ScheduleAttemptFailure"),
        ("active", "ForceActivate"),
    ]


# --- pending pods that come and go ------------------------------------------------------------------------------------


def test_a_new_pending_pod_may_help_others_but_never_itself() -> None:
    """As the last member of a gang does."""
    came = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
    room = WaitingRoom(judge("Gang", always, came))
    room.gates["new"] = "Gang"
    first = room.add_rejected(pod("first"), "Gang")
    new = pod("new").build()
    room.add(pod("new"))
    assert room.event(came, None, new) == 1
    assert (room.home(first), room.home(new.uid)) == (SubQueue.BACKOFF, SubQueue.GATED)
