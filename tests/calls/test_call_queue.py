"""Which calls are sent: one pending and one in flight per object, the more relevant wins, everybody is told once."""

from __future__ import annotations

import pytest

from pilotage.api.calls import Lane
from pilotage.calls.call_queue import CallQueue, CallSkipped, QueuedCall
from tests.calls.sample_calls import Binding, Deletion, Event, SampleCall, Status


class Desk:
    """A call queue and what its customers were told."""

    def __init__(self) -> None:
        self.queue = CallQueue()
        self.told: list[tuple[str, str]] = []

    def submit(self, *calls: SampleCall) -> None:
        for call in calls:
            self.queue.submit(call, lambda error, text=call.text: self.told.append((text, _outcome(error))))
            self.queue.check()

    def take(self, lane: Lane) -> QueuedCall:
        queued = self.queue.next(lane)
        assert queued is not None
        return queued

    def sent(self, lane: Lane) -> list[str]:
        """Send everything of a lane; what was sent, in order."""
        texts = []
        while (queued := self.queue.next(lane)) is not None:
            assert isinstance(queued.call, SampleCall)
            texts.append(queued.call.text)
            self.queue.finish(queued, None)
            self.queue.check()
        return texts


def _outcome(error: Exception | None) -> str:
    return "done" if error is None else "skipped" if isinstance(error, CallSkipped) else str(error)


def test_calls_of_a_lane_are_sent_in_order() -> None:
    desk = Desk()
    desk.submit(Status("a"), Status("b"), Binding("c"))
    assert desk.queue.pending(Lane.STATUS) == 2 and not desk.queue.is_idle
    assert desk.sent(Lane.STATUS) == ["status a", "status b"]
    assert desk.sent(Lane.BIND) == ["binding c"]
    assert desk.told == [("status a", "done"), ("status b", "done"), ("binding c", "done")]
    assert desk.queue.is_idle


def test_what_went_wrong_is_told() -> None:
    desk = Desk()
    desk.submit(Status("a"))
    desk.queue.finish(desk.take(Lane.STATUS), OSError("gone"))
    assert desk.told == [("status a", "gone")]


def test_two_calls_of_one_kind_are_merged_and_both_are_told() -> None:
    desk = Desk()
    desk.submit(Status("a", "1"), Status("a", "2"), Status("a", "3"))
    assert desk.queue.pending(Lane.STATUS) == 1
    assert desk.sent(Lane.STATUS) == ["1+2+3"]
    assert desk.told == [("1", "done"), ("2", "done"), ("3", "done")]


def test_a_merged_call_keeps_its_place() -> None:
    desk = Desk()
    desk.submit(Status("a", "1"), Status("b"), Status("a", "2"))
    assert desk.sent(Lane.STATUS) == ["1+2", "status b"]


@pytest.mark.parametrize(
    ("first", "second"), [(Status("a"), Binding("a")), (Status("a"), Deletion("a")), (Binding("a"), Deletion("a"))]
)
def test_a_more_relevant_call_takes_the_place_of_a_pending_one(first: SampleCall, second: SampleCall) -> None:
    desk = Desk()
    desk.submit(first, second)
    assert desk.told == [(first.text, "skipped")]
    assert desk.sent(first.lane) == [] and desk.sent(second.lane) == [second.text]
    assert desk.told[1:] == [(second.text, "done")]


def test_a_less_relevant_call_is_not_worth_sending_and_moves_nobody() -> None:
    desk = Desk()
    desk.submit(Binding("a"), Binding("b"), Status("a"))
    assert desk.told == [("status a", "skipped")]
    assert desk.sent(Lane.BIND) == ["binding a", "binding b"]


def test_a_less_relevant_call_is_not_sent_during_a_more_relevant_one() -> None:
    desk = Desk()
    desk.submit(Binding("a"))
    flying = desk.take(Lane.BIND)
    desk.submit(Status("a"))
    assert desk.told == [("status a", "skipped")]
    desk.queue.finish(flying, None)
    assert desk.sent(Lane.STATUS) == []


@pytest.mark.parametrize("second", [Status("a", "second"), Binding("a", "second")])
def test_an_object_has_one_call_in_flight(second: SampleCall) -> None:
    desk = Desk()
    desk.submit(Status("a", "first"))
    flying = desk.take(Lane.STATUS)
    desk.submit(second, Status("b"))
    assert desk.queue.in_flight == 1
    assert desk.sent(Lane.BIND) == [] and desk.sent(Lane.STATUS) == ["status b"]
    desk.queue.finish(flying, None)
    assert desk.sent(second.lane) == ["second"]
    assert ("first", "done") in desk.told and ("second", "done") in desk.told


def test_a_call_that_becomes_free_is_pointed_out() -> None:
    """Otherwise nobody would look into its lane again."""
    desk = Desk()
    desk.submit(Status("a"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Binding("a"))
    assert desk.queue.finish(flying, None) is Lane.BIND
    assert desk.queue.finish(desk.take(Lane.BIND), None) is None


def test_a_pending_call_is_merged_while_another_is_in_flight() -> None:
    desk = Desk()
    desk.submit(Status("a", "1"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Status("a", "2"), Status("a", "3"))
    desk.queue.finish(flying, None)
    assert desk.sent(Lane.STATUS) == ["2+3"]


def test_events_of_one_pod_do_not_replace_each_other() -> None:
    desk = Desk()
    desk.submit(Event("a/1"), Event("a/2"), Binding("a"))
    assert desk.sent(Lane.EVENT) == ["event a/1", "event a/2"]


def test_whoever_is_told_may_submit_again() -> None:
    """The outcome of a replaced call comes after its successor has taken the place."""
    queue, told = CallQueue(), []

    def insist(error: Exception | None) -> None:
        told.append(_outcome(error))
        queue.submit(Status("a", "again"), lambda error: told.append(_outcome(error)))

    queue.submit(Status("a"), insist)
    queue.submit(Binding("a"), lambda error: told.append(f"binding {_outcome(error)}"))
    queue.check()
    assert told == ["skipped", "skipped"] and queue.pending(Lane.BIND) == 1
