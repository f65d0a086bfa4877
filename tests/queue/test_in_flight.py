"""Tickets and the events that their pods have missed."""

from __future__ import annotations

from pilotage.api import Action, ClusterEvent, Resource
from pilotage.queue.sub_queues import InFlight, QueuedPodInfo, Ticket
from pilotage.testing import pod

EVENT = ClusterEvent(Resource.NODE, Action.ADD)


def take(flights: InFlight, name: str) -> Ticket:
    return flights.take(QueuedPodInfo(pod(name).build(), 0.0), 0.0)


def missed(flights: InFlight, ticket: Ticket) -> list[str]:
    return [recorded.new for recorded in flights.missed(ticket)]


def record(flights: InFlight, *events: str) -> None:
    for event in events:
        flights.record(EVENT, None, event)


def test_without_tickets_nothing_is_recorded() -> None:
    flights = InFlight()
    record(flights, "e")
    assert flights.event_count == 0 and len(flights) == 0


def test_a_ticket_has_missed_what_came_after_it() -> None:
    flights = InFlight()
    first = take(flights, "a")
    record(flights, "e1", "e2")
    second = take(flights, "b")
    record(flights, "e3")
    assert missed(flights, first) == ["e1", "e2", "e3"]
    assert missed(flights, second) == ["e3"]
    assert list(flights.tickets()) == [first, second] and first.uid in flights.uids


def test_events_are_dropped_from_the_head_up_to_the_next_ticket() -> None:
    flights = InFlight()
    first = take(flights, "a")
    record(flights, "e1")
    second = take(flights, "b")
    record(flights, "e2")
    third = take(flights, "c")
    record(flights, "e3")
    flights.release(second)
    assert flights.event_count == 3
    flights.release(first)
    assert flights.event_count == 1 and missed(flights, third) == ["e3"]
    flights.release(third)
    assert flights.event_count == 0


def test_numbering_goes_on_after_events_were_dropped() -> None:
    flights = InFlight()
    flights.release(take(flights, "a"))
    old = take(flights, "b")
    record(flights, "e1")
    young = take(flights, "c")
    flights.release(old)
    record(flights, "e2")
    assert missed(flights, young) == ["e2"]


def test_releasing_a_used_ticket_does_not_touch_a_newer_one_of_the_pod() -> None:
    flights = InFlight()
    first = take(flights, "a")
    flights.release(first)
    second = take(flights, "a")
    record(flights, "e1")
    flights.release(first)
    assert second.uid in flights.uids and missed(flights, second) == ["e1"]
    assert not first.is_open and second.is_open


def test_a_ticket_that_listens_no_more_needs_no_events_and_stays_open() -> None:
    flights = InFlight()
    first, second = take(flights, "a"), take(flights, "b")
    record(flights, "e1")
    flights.stop_listening(first)
    assert flights.event_count == 1 and missed(flights, second) == ["e1"] and missed(flights, first) == []
    flights.stop_listening(second)
    assert flights.event_count == 0
    record(flights, "e2")
    assert flights.event_count == 0 and first.is_open and len(flights) == 2
    flights.check()
