"""The picture of the queue: where every pod is, how long it waits, and for what."""

from __future__ import annotations

from pilotage.queue.report import QueuedPodReport, QueueReport, queue_report
from pilotage.testing import pod
from tests.queue.waiting_room import WaitingRoom, judge


def names(pods: tuple[QueuedPodReport, ...]) -> list[str]:
    return [found.name for found in pods]


def full_room() -> WaitingRoom:
    """One pod or two in each part of the queue."""
    room = WaitingRoom(judge("Fit"))
    room.gates["gated"] = "Gate"
    room.add_rejected(pod("backing-off"), "Fit")
    room.event()
    room.add_rejected(pod("failed"))
    room.add(pod("gated"))
    room.add(pod("bound").priority(9))
    room.queue.needs_no_events(room.pop())
    room.add(pod("tried").priority(9))
    room.pop()
    room.add_rejected(pod("stuck").priority(8), "Fit", pending=["Claims"])
    room.add(pod("low"), pod("high").priority(5))
    return room


def report(room: WaitingRoom, limit: int = 100) -> QueueReport:
    return queue_report(room.queue, room.clock.now + 0.5, limit)


def test_every_part_has_its_pods() -> None:
    found = report(full_room())
    assert names(found.active) == ["high", "low"]
    assert names(found.backoff) == ["backing-off", "failed"]
    assert names(found.unschedulable) == ["stuck"]
    assert names(found.gated) == ["gated"]
    assert names(found.in_flight) == ["bound", "tried"]
    assert found.counts == {"active": 2, "backoff": 2, "unschedulable": 1, "gated": 1, "in_flight": 2}


def test_what_a_pod_waits_for_is_told() -> None:
    found = report(full_room())
    stuck, gated = found.unschedulable[0], found.gated[0]
    assert (stuck.rejectors, stuck.pending, stuck.attempts, stuck.priority) == (("Claims", "Fit"), ("Claims",), 1, 8)
    assert (gated.gated_by, gated.message, gated.attempts) == ("Gate", "held by Gate", 0)
    assert [(p.name, p.is_error, p.backoff_seconds) for p in found.backoff] == [
        ("backing-off", False, 1.5),
        ("failed", True, 1.5),
    ]
    assert [(p.name, p.is_binding, p.waiting_seconds) for p in found.in_flight] == [
        ("bound", True, 0.5),
        ("tried", False, 0.5),
    ]


def test_lists_are_cut_and_counts_are_not() -> None:
    room = WaitingRoom()
    room.add(*(pod(f"p{number}").priority(number) for number in range(10)))
    found = report(room, limit=3)
    assert names(found.active) == ["p9", "p8", "p7"] and found.counts["active"] == 10


def test_the_time_left_is_the_time_until_the_pod_is_free() -> None:
    room = WaitingRoom()
    room.add_rejected(pod("failed"))
    (failed,) = report(room).backoff
    assert room.after(0.5 + failed.backoff_seconds - 0.1) == 0
    assert room.after(0.1) == 1
