"""Where pods are: order of popping, backoff, giving back, updates and deletions in every part of the queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilotage.api import QueuedPod
from pilotage.observe.metrics import Metrics
from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.hints import HintTable
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import PodBuilder, pod
from tests.queue.waiting_room import NODE_ADDED, OWN_LABEL, StoppedClock, WaitingRoom, always, judge, never

# --- order ------------------------------------------------------------------------------------------------------------


def test_higher_priority_first_then_who_came_first() -> None:
    room = WaitingRoom()
    for name, priority in [("b", 0), ("a", 0), ("high", 5), ("low", -1)]:
        room.add(pod(name).priority(priority))
        room.clock.now += 1
    assert room.pop_all() == ["high", "b", "a", "low"]


def test_pods_of_the_same_instant_keep_their_order() -> None:
    room = WaitingRoom()
    room.add(*(pod(name) for name in "cab"))
    assert room.pop_all() == ["c", "a", "b"]


def test_an_empty_queue_pops_nothing() -> None:
    assert WaitingRoom().queue.pop() is None


def test_a_popped_pod_is_in_flight_and_counts_its_attempt() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    ticket = room.pop()
    assert room.home(ticket.uid) is SubQueue.IN_FLIGHT and room.queue.size(SubQueue.IN_FLIGHT) == 1
    assert list(room.queue.tickets()) == [ticket] and room.queue.entry(ticket.uid) is None
    assert (ticket.entry.attempts, ticket.popped_at) == (1, 1000.0)


def test_a_pod_that_is_done_is_forgotten() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    ticket = room.pop()
    room.queue.done(ticket)
    room.queue.check()
    assert ticket.uid not in room.queue and not ticket.is_open


# --- coming back ------------------------------------------------------------------------------------------------------


def test_a_rejected_pod_waits_for_events() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    assert room.home(uid) is SubQueue.UNSCHEDULABLE
    assert room.after(3600) == 0 and room.queue.pop() is None


def test_a_pod_whose_attempt_was_an_error_waits_for_time() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"))
    assert room.home(uid) is SubQueue.ERROR_BACKOFF
    assert room.after(1) == 0
    assert room.after(1) == 1
    assert room.home(uid) is SubQueue.ACTIVE


def test_a_pod_in_backoff_is_popped_early_when_nothing_is_active() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("waiting"), "Fit")
    room.event()
    assert room.home(uid) is SubQueue.BACKOFF
    room.add(pod("fresh"))
    assert room.pop_all() == ["fresh", "waiting"]


def test_a_pod_in_error_backoff_is_never_popped_early() -> None:
    room = WaitingRoom()
    room.add_rejected(pod("p"))
    assert room.queue.pop() is None
    assert room.after(2) == 1 and room.pop().pod.name == "p"


def test_a_pod_that_backs_off_is_not_popped_early_and_waits_longer_each_time() -> None:
    """What followed its attempt failed: another attempt at once would fail in the same way."""
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    waits = []
    for _ in range(6):
        room.clock.now += 3600
        room.queue.back_off([uid])
        room.event()
        assert room.home(uid) is SubQueue.ERROR_BACKOFF and room.queue.pop() is None
        waits.append(room.queue.entry(uid).backoff_until - room.clock.now)
        room.after(20)
        room.reject(room.pop(), "Fit")
    assert waits == [1, 2, 4, 8, 10, 10], "from when it failed, not from the attempt"
    assert room.home(uid) is SubQueue.UNSCHEDULABLE, "the next attempt is one like any other"


def test_a_pod_that_backs_off_while_it_is_in_flight_does_so_when_it_comes_back() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add(pod("p"))
    ticket = room.pop()
    room.queue.back_off([ticket.uid])
    room.event()
    room.reject(ticket, "Fit")
    assert room.home(ticket.uid) is SubQueue.ERROR_BACKOFF
    assert room.after(2) == 1


def test_of_the_pods_in_backoff_the_one_that_is_free_first_goes_first() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add_rejected(pod("often"), "Fit")
    room.event()
    room.reject(room.pop(), "Fit")
    room.event()
    room.add_rejected(pod("low").priority(-1), "Fit")
    room.add_rejected(pod("high").priority(9), "Fit")
    room.event()
    assert room.queue.size(SubQueue.BACKOFF) == 3
    assert room.pop_all() == ["high", "low", "often"]


def test_backoff_grows_with_each_rejection_and_is_rounded_up_to_whole_seconds() -> None:
    room = WaitingRoom(judge("Fit"))
    room.clock.now = 1000.5
    uid = room.add_rejected(pod("p"), "Fit")
    waits = []
    for _ in range(6):
        room.event()
        waits.append(room.queue.entry(uid).backoff_until - int(room.clock.now))
        room.reject(room.pop(), "Fit")
    assert waits == [1, 2, 4, 8, 10, 10]


def test_an_error_does_not_reset_rejections_and_a_rejection_resets_errors() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    room.event()
    room.reject(room.pop(), "Fit")
    room.event()
    entry = room.pop().entry
    room.reject(next(iter(room.queue.tickets())))
    assert (entry.unschedulable_count, entry.consecutive_errors) == (2, 1)
    assert entry.backoff_until == room.clock.now + 1
    room.after(2)
    room.reject(room.pop(), "Fit")
    assert (entry.unschedulable_count, entry.consecutive_errors) == (3, 0)
    assert entry.backoff_until == room.clock.now + 4
    assert room.home(uid) is SubQueue.UNSCHEDULABLE and entry.attempts == 4


def test_without_backoff_an_event_makes_the_pod_active_at_once() -> None:
    room = WaitingRoom(judge("Fit"), backoff=BackoffPolicy(max_seconds=0))
    uid = room.add_rejected(pod("p"), "Fit")
    room.event()
    assert room.home(uid) is SubQueue.ACTIVE
    error = WaitingRoom(backoff=BackoffPolicy(max_seconds=0))
    assert error.home(error.add_rejected(pod("p"))) is SubQueue.ACTIVE


def test_an_event_after_the_backoff_makes_the_pod_active() -> None:
    room = WaitingRoom(judge("Fit"))
    uid = room.add_rejected(pod("p"), "Fit")
    room.clock.now += 2
    room.event()
    assert room.home(uid) is SubQueue.ACTIVE


def test_a_pod_comes_back_with_its_newest_object() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    newest = pod("p").label("new", "yes").build()
    room.reject(room.pop(), "Fit", pod=newest)
    assert room.queue.entry(newest.uid).pod is newest


def test_the_first_attempt_is_remembered_over_failures() -> None:
    room = WaitingRoom(judge("Fit"))
    room.gates["p"] = "Gate"
    room.add(pod("p"))
    entry = next(room.queue.entries())
    assert entry.first_attempt_at is None
    room.gates.clear()
    room.clock.now = 1010.0
    room.queue.activate([entry.pod.uid])
    room.reject(room.pop(), "Fit")
    room.clock.now = 1050.0
    room.event()
    assert entry.first_attempt_at == 1010.0


def test_queue_sort_sees_when_a_pod_could_first_be_tried() -> None:
    seen: list[tuple[str, float | None]] = []

    def sort_key(queued: QueuedPod) -> tuple[float, ...]:
        seen.append((queued.pod.name, queued.first_attempt_at))
        return (queued.first_attempt_at or 0.0,)

    clock = StoppedClock()
    queue = SchedulingQueue(clock, sort_key=sort_key, gatekeeper=lambda pod: None, hints=HintTable({}, Metrics()))
    clock.now = 1010.0
    queue.add(pod("p").build())
    first = clock.time()
    clock.now = 1050.0
    queue.add(pod("q").build())
    assert seen == [("p", first), ("q", clock.time())] and first != clock.time()


# --- the same pod twice -----------------------------------------------------------------------------------------------


def test_a_pod_added_twice_is_queued_once() -> None:
    room = WaitingRoom()
    room.add(pod("p"), pod("p").label("seen", "again"))
    ticket = room.pop()
    assert dict(ticket.pod.labels) == {"seen": "again"}
    assert room.queue.pop() is None


def test_a_pod_added_while_in_flight_is_not_popped_a_second_time() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    ticket = room.pop()
    room.add(pod("p"))
    assert room.queue.pop() is None
    room.queue.done(ticket)
    room.queue.check()
    assert ticket.uid not in room.queue


def test_a_recreated_pod_is_another_pod() -> None:
    room = WaitingRoom()
    room.add(pod("p").uid("first"))
    first = room.pop()
    room.add(pod("p").uid("second"))
    second = room.pop()
    assert second.uid == "second" and second.entry.attempts == 1
    room.queue.done(first)
    assert room.home("second") is SubQueue.IN_FLIGHT


def test_a_ticket_is_good_for_one_return() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    ticket = room.pop()
    room.reject(ticket, "Fit")
    with pytest.raises(ValueError, match="default/p"):
        room.reject(ticket, "Fit")
    assert room.queue.size(SubQueue.UNSCHEDULABLE) == 1


# --- updates ----------------------------------------------------------------------------------------------------------

LABELLED = pod("p").label("changed", "yes")


def update(room: WaitingRoom, new: PodBuilder = LABELLED, old: PodBuilder | None = None) -> None:
    room.queue.update(new.build(), [OWN_LABEL], (old or pod("p")).build())
    room.queue.check()


def active(room: WaitingRoom) -> None:
    room.add(pod("p"))


def backoff(room: WaitingRoom) -> None:
    room.add_rejected(pod("p"), "Fit")
    room.event()


def error_backoff(room: WaitingRoom) -> None:
    room.add_rejected(pod("p"))


@pytest.mark.parametrize(
    ("fill", "home"),
    [(active, SubQueue.ACTIVE), (backoff, SubQueue.BACKOFF), (error_backoff, SubQueue.ERROR_BACKOFF)],
    ids=["active", "backoff", "error backoff"],
)
def test_an_update_of_a_pod_whose_turn_comes_anyway_replaces_its_object(
    fill: Callable[[WaitingRoom], None], home: SubQueue
) -> None:
    room = WaitingRoom(judge("Fit"), judge("Fit2", always, OWN_LABEL))
    fill(room)
    update(room)
    (entry,) = room.queue.entries()
    assert entry.home is home and dict(entry.pod.labels) == {"changed": "yes"}
    assert room.queue.size(home) == 1
    room.after(2)
    assert room.pop_all() == ["p"]


def test_an_update_of_an_active_pod_can_change_its_turn() -> None:
    room = WaitingRoom()
    room.add(pod("a"), pod("p"))
    update(room, pod("p").priority(1))
    assert room.pop_all() == ["p", "a"]


def test_an_update_that_helps_moves_an_unschedulable_pod() -> None:
    room = WaitingRoom(judge("Own", always, OWN_LABEL))
    uid = room.add_rejected(pod("p"), "Own")
    update(room)
    assert room.home(uid) is SubQueue.BACKOFF
    assert dict(room.queue.entry(uid).pod.labels) == {"changed": "yes"}


def test_an_update_that_does_not_help_only_replaces_the_object() -> None:
    room = WaitingRoom(judge("Own", never, OWN_LABEL), judge("Other", always, OWN_LABEL))
    uid = room.add_rejected(pod("p"), "Own")
    update(room)
    assert room.home(uid) is SubQueue.UNSCHEDULABLE
    assert dict(room.queue.entry(uid).pod.labels) == {"changed": "yes"}


def test_an_unschedulable_pod_is_found_by_events_after_an_update_of_its_labels() -> None:
    """The pool files pods by class, and the class follows from the labels."""
    room = WaitingRoom(judge("Fit", lambda p, old, new: always(p, old, new) if p.labels else never(p, old, new)))
    uid = room.add_rejected(pod("p"), "Fit")
    room.event()
    assert room.home(uid) is SubQueue.UNSCHEDULABLE
    update(room)
    room.event()
    assert room.home(uid) is SubQueue.BACKOFF


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    room = WaitingRoom()
    update(room)
    assert room.pop_all() == ["p"]


def test_an_update_of_a_pod_in_flight_is_replayed_when_it_returns() -> None:
    room = WaitingRoom(judge("Own", always, OWN_LABEL))
    room.add(pod("p"))
    ticket = room.pop()
    update(room)
    assert room.queue.pop() is None and room.queue.recorded_events == 1
    assert room.reject(ticket, "Own", pod=LABELLED.build()) is SubQueue.BACKOFF


# --- deletion ---------------------------------------------------------------------------------------------------------


def unschedulable(room: WaitingRoom) -> None:
    room.add_rejected(pod("p"), "Fit")


def gated(room: WaitingRoom) -> None:
    room.gates["p"] = "Gate"
    room.add(pod("p"))


@pytest.mark.parametrize("fill", [active, backoff, error_backoff, unschedulable, gated])
def test_a_deleted_pod_is_gone_from_wherever_it_was(fill: Callable[[WaitingRoom], None]) -> None:
    room = WaitingRoom(judge("Fit"))
    fill(room)
    uid = pod("p").build().uid
    assert uid in room.queue
    room.queue.delete(uid)
    room.queue.check()
    assert uid not in room.queue and not any(room.queue.size(home) for home in SubQueue)
    assert room.event(NODE_ADDED) == 0 and room.after(100) == 0 and room.queue.pop() is None


def test_deleting_an_unknown_pod_is_harmless() -> None:
    room = WaitingRoom()
    room.queue.delete("nobody")
    room.queue.check()


def test_a_pod_deleted_in_flight_is_noticed_when_its_ticket_comes_back() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    ticket = room.pop()
    room.queue.delete(ticket.uid)
    assert room.home(ticket.uid) is SubQueue.IN_FLIGHT
    room.queue.done(ticket)
    assert room.home(ticket.uid) is None
