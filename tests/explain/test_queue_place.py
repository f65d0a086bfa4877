"""What the queue of the running scheduler adds to an explanation."""

from __future__ import annotations

from pilotage.explain.queue_place import queue_place
from pilotage.queue.report import QueuedPodReport, QueueReport


def report(**parts: tuple[QueuedPodReport, ...]) -> QueueReport:
    return QueueReport(time=0.0, counts={}, **parts)  # type: ignore[arg-type]


def queued(uid: str, **facts: object) -> QueuedPodReport:
    return QueuedPodReport("default", uid, uid, 0, 3, 90.4, **facts)  # type: ignore[arg-type]


def test_unschedulable_pod_waits_for_the_plugins_that_refused_it() -> None:
    found = queue_place(report(unschedulable=(queued("a"), queued("b", rejectors=("NodePorts",)))), "b")
    assert found == {
        "place": "unschedulable",
        "since": "1m30s ago",
        "attempts": 3,
        "waits for events of": "NodePorts",
    }


def test_backoff_says_how_much_is_left_and_errors_have_their_own() -> None:
    found = queue_place(report(backoff=(queued("a", backoff_seconds=4.26, is_error=True),)), "a")
    assert (found["place"], found["backoff left"]) == ("error backoff", "4.3s")


def test_gate_is_named() -> None:
    assert queue_place(report(gated=(queued("a", gated_by="SchedulingGates"),)), "a")["gated by"] == "SchedulingGates"


def test_pod_that_is_not_queued_says_nothing() -> None:
    assert queue_place(report(active=(queued("a"),)), "z") == {}
