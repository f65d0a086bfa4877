"""Pods being scheduled, and the events that happened meanwhile.

A pod in flight was evaluated against a cluster that is older than the events that arrived since. They are recorded
and replayed when the pod comes back, so that no wake-up is missed. One list serves all pods in flight: a ticket
remembers the number of the first event after it was given out, and what no ticket needs any more is dropped. A pod
that is past Permit has no rejectors when it fails, and needs no events: it keeps its ticket, but listens no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, KeysView
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pilotage.api.events import ClusterEvent
from pilotage.queue.entry import Entry, Ticket


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Tickets by pod UID and the events that they have missed."""

    def __init__(self) -> None:
        self._tickets: dict[str, Ticket] = {}
        self.uids: KeysView[str] = self._tickets.keys()
        """Of the pods in flight; always up to date."""
        self._listening: dict[str, Ticket] = {}
        self._events: deque[RecordedEvent] = deque()
        self._first_number = 0

    def __len__(self) -> int:
        return len(self._tickets)

    @property
    def event_count(self) -> int:
        return len(self._events)

    def get(self, uid: str) -> Ticket | None:
        return self._tickets.get(uid)

    def is_listening(self, uid: str) -> bool:
        """Would the pod be judged by what happens now?"""
        return uid in self._listening

    def events(self) -> Iterator[RecordedEvent]:
        """Everything that is kept, oldest first."""
        return iter(self._events)

    def tickets(self) -> Iterator[Ticket]:
        return iter(self._tickets.values())

    def take(self, entry: Entry, now: float) -> Ticket:
        ticket = Ticket(entry, now, self._first_number + len(self._events))
        uid = entry.pod.uid
        self._tickets[uid] = self._listening[uid] = ticket
        return ticket

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        if self._listening:
            self._events.append(RecordedEvent(event, old, new))

    def missed(self, ticket: Ticket) -> Iterator[RecordedEvent]:
        """What happened since the ticket was given out, in order; nothing if it listens no more."""
        if self._listening.get(ticket.uid) is not ticket:
            return iter(())
        return islice(self._events, ticket.events_from - self._first_number, None)

    def stop_listening(self, ticket: Ticket) -> None:
        """The pod is still in flight, but whatever happens cannot matter when it comes back."""
        uid = ticket.uid
        if self._listening.get(uid) is ticket:
            del self._listening[uid]
            self._drop_unneeded()

    def release(self, ticket: Ticket) -> None:
        """The ticket is used up; forget the events that only it could have asked for."""
        uid = ticket.uid
        if self._tickets.get(uid) is ticket:
            del self._tickets[uid]
        ticket.is_open = False
        self.stop_listening(ticket)

    def _drop_unneeded(self) -> None:
        # Tickets are kept in the order in which they were given out, so the first one needs the oldest events.
        oldest = next(iter(self._listening.values()), None)
        keep_from = self._first_number + len(self._events) if oldest is None else oldest.events_from
        while self._first_number < keep_from:
            self._events.popleft()
            self._first_number += 1

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert self._listening.items() <= self._tickets.items()
        assert self._listening or not self._events, "nobody can ask for these events any more"
