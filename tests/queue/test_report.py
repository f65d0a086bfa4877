"""The picture of the queue: where every pod is, how long it waits, and for what."""

from __future__ import annotations

from typing import Any

from pilotage.queue.report import Held, QueuedPodReport, QueueReport, Selection, queue_report
from pilotage.testing import PodBuilder, pod
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


def report(room: WaitingRoom, limit: int = 100, **selected: Any) -> QueueReport:
    return queue_report(room.queue, room.clock.now + 0.5, Selection(limit, **selected))


def test_every_part_has_its_pods() -> None:
    found = report(full_room())
    assert names(found.active) == ["high", "low"]
    assert names(found.backoff) == ["backing-off", "failed"]
    assert names(found.unschedulable) == ["stuck"]
    assert names(found.gated) == ["gated"]
    assert names(found.in_flight) == ["bound", "tried"]
    assert found.counts == {
        "active": 2,
        "backoff": 2,
        "unschedulable": 1,
        "gated": 1,
        "in_flight": 2,
        "incomplete": 0,
        "pending": 0,
    }


def test_what_a_pod_waits_for_is_reported() -> None:
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


def rows(pods: tuple[QueuedPodReport, ...]) -> list[tuple[str, int]]:
    return [(found.name, found.count) for found in pods]


def replica(name: str, owner: str, cpu: int = 1) -> PodBuilder:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    obj = pod(name).requests(cpu=cpu).json()
    obj["metadata"]["ownerReferences"] = [reference]
    return PodBuilder(obj)


def test_equal_pods_that_wait_for_the_same_are_one_row() -> None:
    room = WaitingRoom(judge("Fit"), judge("Ports"))
    for number in range(3):
        room.add_rejected(replica(f"web-{number}", "web"), "Fit")
    room.add_rejected(replica("db-0", "db"), "Fit")
    room.add_rejected(replica("new-web", "web", cpu=2), "Fit")
    room.add_rejected(replica("odd-web", "web"), "Ports")
    found = report(room, is_grouped=True)
    assert rows(found.unschedulable) == [("db-0", 1), ("new-web", 1), ("odd-web", 1), ("web-0", 3)]
    assert found.counts["unschedulable"] == 6
    assert rows(report(room).unschedulable)[3:] == [("web-0", 1), ("web-1", 1), ("web-2", 1)]


def test_a_row_says_the_longest_wait_and_the_most_attempts() -> None:
    room = WaitingRoom(judge("Fit"))
    room.add_rejected(replica("web-0", "web"), "Fit")
    room.after(5)
    room.add_rejected(replica("web-1", "web"), "Fit")
    (row,) = report(room, is_grouped=True).unschedulable
    assert (row.name, row.count, row.waiting_seconds, row.attempts) == ("web-0", 2, 5.5, 1)


def test_pods_without_an_owner_are_equal_if_their_labels_are() -> None:
    room = WaitingRoom(judge("Fit"))
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        room.add_rejected(pod(name).label("app", app), "Fit")
    assert rows(report(room, is_grouped=True).unschedulable) == [("a", 2), ("c", 1)]


def test_the_limit_counts_rows_and_a_namespace_chooses_before_it() -> None:
    room = WaitingRoom(judge("Fit"))
    for number in range(4):
        room.add_rejected(pod(f"p{number}").requests(cpu=number + 1), "Fit")
    room.add_rejected(pod("other").namespace("shop"), "Fit")
    assert len(report(room, 2, is_grouped=True).unschedulable) == 2
    assert names(report(room, 1, namespace="shop").unschedulable) == ["other"]


def test_who_holds_a_pod_in_permit_is_reported_and_says_rows_apart() -> None:
    room = WaitingRoom()
    room.add(*(replica(f"web-{number}", "web") for number in range(3)))
    first, second, third = (room.pop() for _ in range(3))
    held = {
        first.uid: Held("n", ("Quota",)),
        second.uid: Held("m", ("Quota",)),
        third.uid: Held("n", ("Gang", "Quota")),
    }
    found = report(room, is_grouped=True, held=held).in_flight
    assert [(one.held_by, one.node, one.count) for one in found] == [(("Quota",), "n", 2), (("Gang", "Quota"), "n", 1)]
