"""The story of one pod, told from its own steps and from rounds of hints."""

from __future__ import annotations

from pilotage.observe.decision_log import DecisionLog
from pilotage.queue.timeline import timeline
from pilotage.testing import node, pod
from tests.queue.waiting_room import NODE_ADDED, WaitingRoom, always, judge, never


def story(room: WaitingRoom, key: str = "default/p") -> list[tuple[str, str, str]]:
    told = timeline(room.queue, key)
    assert told is not None
    return [(item.what, item.detail, item.why) for item in told.items]


def test_no_one_remembers_a_pod_that_never_was() -> None:
    assert timeline(WaitingRoom().queue, "default/p") is None


def test_pod_that_is_bound_at_once_came_was_tried_and_was_bound() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    came = [("moved", "active", "UnscheduledPodAdd")]
    assert story(room) == came
    ticket = room.pop()
    assert story(room) == [*came, ("tried", "1", "")]
    room.queue.done(ticket, "a")
    assert story(room) == [*came, ("tried", "1", ""), ("bound", "a", "")]


def test_rejected_pod_says_who_rejected_it_and_every_answer() -> None:
    room = WaitingRoom(judge("Fit", never), judge("Other", always))
    room.add_rejected(pod("p"), "Fit")
    room.clock.now += 1
    room.event(NODE_ADDED, None, node("small").build())
    assert story(room)[2:] == [
        ("rejected", "Fit", ""),
        ("moved", "unschedulable", "ScheduleAttemptFailure"),
        ("asked", "Fit: QueueSkip", "NodeAdd small"),
    ]


def test_answer_that_wakes_the_pod_comes_before_its_move() -> None:
    room = WaitingRoom(judge("Fit", always))
    room.add_rejected(pod("p"), "Fit")
    room.clock.now += 1
    room.event(NODE_ADDED, None, node("large").build())
    assert story(room)[-2:] == [("asked", "Fit: Queue", "NodeAdd large"), ("moved", "backoff", "NodeAdd")]


def test_events_seen_while_the_pod_was_tried_are_in_the_story() -> None:
    room = WaitingRoom(judge("Fit", always))
    room.add(pod("p"))
    ticket = room.pop()
    room.event(NODE_ADDED, None, node("large").build())
    room.reject(ticket, "Fit")
    assert story(room)[1:4] == [("tried", "1", ""), ("rejected", "Fit", ""), ("asked", "Fit: Queue", "NodeAdd large")]


def test_rounds_before_the_pod_waited_or_about_others_are_not_its_own() -> None:
    room = WaitingRoom(judge("Fit", never), judge("Taint", never))
    room.add_rejected(pod("early"), "Fit")
    room.event()
    room.clock.now += 10
    room.add_rejected(pod("p"), "Taint")
    room.clock.now += 10
    room.event()
    assert [step for step in story(room) if step[0] == "asked"] == [("asked", "Taint: QueueSkip", "NodeAdd")]


def test_equal_rounds_of_one_second_are_one_line() -> None:
    room = WaitingRoom(judge("Fit", never))
    room.add_rejected(pod("p"), "Fit")
    for _ in range(5):
        room.event(NODE_ADDED, None, node("small").build())
    told = timeline(room.queue, "default/p")
    assert told is not None and [item.times for item in told.items if item.what == "asked"] == [5]


def test_deleted_pod_has_left() -> None:
    room = WaitingRoom()
    uid = room.add_rejected(pod("p"), "Fit")
    room.queue.delete(uid)
    assert story(room)[-1] == ("left", "", "")


def test_long_stories_keep_their_beginning_and_their_end() -> None:
    room = WaitingRoom()
    room.add(pod("p"))
    for _ in range(200):
        room.reject(room.pop(), "Fit")
        room.queue.activate(["uid-default-p"])
    told = story(room)
    assert len(told) < 100
    assert told[0] == ("moved", "active", "UnscheduledPodAdd") and told[-1] == ("moved", "active", "ForceActivate")


def test_rounds_are_bounded() -> None:
    log = DecisionLog()
    for second in range(10_000):
        log.note_round("s", "Fit", "NodeAdd", "n", None, float(2 * second))
    rounds = list(log.rounds())
    assert len(rounds) < 5000 and rounds[-1].first == 2 * 9999
