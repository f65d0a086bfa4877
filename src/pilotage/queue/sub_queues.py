"""A pod in the queue, and two of the places where it can be: the heaps of pods that wait for their turn, and in flight.

Pods that may have to wait for the same others outside stand in one line each:

    active          as QueueSort says
    backoff         by the end of the backoff, then as QueueSort says
    error backoff   by the end of the backoff

A pod that leaves its heap, or moves in it, only gets another place number: its old place is void, and is dropped when
it comes to the top.

A pod in flight was evaluated against a cluster that is older than the events that arrived since. They are recorded
and replayed when the pod comes back, so that no wake-up is missed. One list serves all pods in flight: a ticket
remembers the number of the first event after it was given out, and what no ticket needs any more is dropped. A pod
that is past Permit has no rejectors when it fails, and needs no events: it keeps its ticket, but listens no more.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, KeysView
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

import msgspec

from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.api.views import QueuedPod
from pilotage.model import Pod
from pilotage.observe.decision_log import Step


class SubQueue(StrEnum):
    """Where a queued pod is; every pod has exactly one home."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


QUEUE_NAMES = {
    SubQueue.ACTIVE: "active",
    SubQueue.BACKOFF: "backoff",
    SubQueue.ERROR_BACKOFF: "backoff",
    SubQueue.UNSCHEDULABLE: "unschedulable",
    SubQueue.GATED: "gated",
}
"""How metrics call the parts of the queue."""
INCOMING_NAMES = {**QUEUE_NAMES, SubQueue.GATED: "unschedulable"}
"""How the metric of moves calls them: kube-scheduler does not tell gated pods apart there."""

POD_ADDED = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)


class RefusedNodes(msgspec.Struct, frozen=True):
    """How many nodes an extender has refused for one reason, and some of them."""

    extender: str
    message: str
    """"" if it gave none."""
    is_unresolvable: bool
    nodes: int
    examples: tuple[str, ...]


class QueuedPodInfo(msgspec.Struct, eq=False):
    """Everything that the queue remembers of a pod between its attempts."""

    pod: Pod
    timestamp: float
    home: SubQueue = SubQueue.ACTIVE
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    overruns: int = 0
    """Attempts in a row that used up the CPU time of their cycle."""
    first_attempt_at: float | None = None
    rejectors: frozenset[str] = frozenset()
    """Plugins that rejected the pod in its last attempt, or that gate it."""
    pending: frozenset[str] = frozenset()
    """Those of them after whose events no backoff is due."""
    gated_by: str = ""
    gate_message: str = ""
    backoff_until: float = 0.0
    must_back_off: bool = False
    """What followed its last attempt failed: it sits out its backoff, even if nothing else is to do."""
    was_flushed: bool = False
    flushed_at: float = 0.0
    place: int = 0
    """Number of the newest place taken in a heap: older places of this entry are void."""
    message: str = ""
    """Why the last attempt failed, for people."""
    refusals: tuple[RefusedNodes, ...] = ()
    """What extenders refused in the last attempt, for people too."""
    history: list[Step] | None = None
    """What happened to the pod so far; None as long as nothing out of the ordinary did: it came, and was tried."""

    def beginning(self, popped_at: float | None = None) -> list[Step]:
        """The story of a pod that came into the active queue and (if it was popped) was tried for the first time."""
        steps: list[Step] = [(self.first_attempt_at or self.timestamp, "moved", SubQueue.ACTIVE.value, POD_ADDED.label)]
        return steps if popped_at is None else [*steps, (popped_at, "tried", 1, "")]


class Ticket(msgspec.Struct, eq=False):
    """Given out by `pop`, handed back by `give_back` or `done`. Keyed by UID, so a recreated pod is another ticket."""

    entry: QueuedPodInfo
    popped_at: float
    events_from: int
    """Events recorded from this number on happened while the pod was in flight."""
    started: float = 0.0
    """When its scheduling began, on the clock that never goes backwards: what durations are measured from."""
    is_open: bool = True

    @property
    def pod(self) -> Pod:
        return self.entry.pod

    @property
    def uid(self) -> str:
        return self.entry.pod.uid


SortKey = Callable[[QueuedPod], tuple[float, ...]]
Line = tuple[int, ...]
"""Numbers of the extenders that a pod has to ask. Pods of a line that is held do not keep those of others waiting."""
LineOf = Callable[[Pod], Line]


def nobody_to_ask(pod: Pod) -> Line:
    return ()


def nothing_is_held(line: Line) -> bool:
    return False


_Place = tuple[tuple[float, ...], int, QueuedPodInfo]
"""Where in a line an entry stands, and the number of that place."""

HEAPS = (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)


class Heaps:
    """Entries whose home is one of `HEAPS`."""

    def __init__(self, sort_key: SortKey, line_of: LineOf = nobody_to_ask) -> None:
        self._sort_key = sort_key
        self._line_of = line_of
        self._lines: dict[SubQueue, dict[Line, list[_Place]]] = {home: {} for home in HEAPS}
        """Of each home: a heap per line."""
        self._places = 0

    def push(self, entry: QueuedPodInfo) -> None:
        """Into the heap that is its home, at the place that is right now; a place that it had before is void."""
        self._places += 1
        entry.place = self._places
        heap = self._lines[entry.home].setdefault(self._line_of(entry.pod), [])
        heapq.heappush(heap, (self._key(entry), entry.place, entry))

    @staticmethod
    def remove(entry: QueuedPodInfo) -> None:
        entry.place = 0

    def first(self, home: SubQueue, is_held: Callable[[Line], bool] = nothing_is_held) -> QueuedPodInfo | None:
        """The first pod of a home that stands in no line that is held."""
        lines = self._lines[home]
        heads = [head for line, heap in lines.items() if not is_held(line) and (head := _head(heap, home)) is not None]
        return min(heads)[2] if heads else None

    def holds(self, entry: QueuedPodInfo) -> bool:
        """Is the entry in the heap that is its home? Looks at all of it; for tests."""
        heaps = self._lines.get(entry.home, {}).values()
        return any(place == entry.place and e is entry for heap in heaps for _, place, e in heap)

    def _key(self, entry: QueuedPodInfo) -> tuple[float, ...]:
        if entry.home is SubQueue.ERROR_BACKOFF:
            return (entry.backoff_until,)
        order = self._sort_key(QueuedPod(entry.pod, entry.timestamp, entry.attempts, entry.first_attempt_at))
        return (entry.backoff_until, *order) if entry.home is SubQueue.BACKOFF else order


def _head(heap: list[_Place], home: SubQueue) -> _Place | None:
    while heap:
        _, place, entry = heap[0]
        if entry.place == place and entry.home is home:
            return heap[0]
        heapq.heappop(heap)
    return None


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

    def take(self, entry: QueuedPodInfo, now: float) -> Ticket:
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
