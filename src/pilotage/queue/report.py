"""What is in the queue, for people and programs: a picture of one moment, made when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from pilotage.queue.entry import Entry, Home, Ticket
from pilotage.queue.scheduling_queue import SchedulingQueue


@dataclass(frozen=True, slots=True)
class QueuedPodReport:
    """One pod and what it waits for."""

    namespace: str
    name: str
    uid: str
    priority: int
    attempts: int
    waiting_seconds: float
    """Since it came into the queue, or since its last attempt; in flight, since it was popped."""
    backoff_seconds: float = 0.0
    """How much of its backoff is left."""
    is_error: bool = False
    """Its last attempt failed with an error: it waits for time only."""
    is_binding: bool = False
    """It has its node and is being bound."""
    rejectors: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    gated_by: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class QueueReport:
    """All parts of the queue; lists may be cut, the counts are not."""

    time: float
    counts: dict[str, int]
    active: tuple[QueuedPodReport, ...] = ()
    backoff: tuple[QueuedPodReport, ...] = ()
    unschedulable: tuple[QueuedPodReport, ...] = ()
    gated: tuple[QueuedPodReport, ...] = ()
    in_flight: tuple[QueuedPodReport, ...] = ()
    recorded_events: int = 0
    """Events that are kept for the pods in flight."""


def queue_report(queue: SchedulingQueue, now: float, limit: int) -> QueueReport:
    """The queue as it is; of each part at most `limit` pods, those that are next or wait longest first."""
    entries = list(queue.entries())

    def part(*homes: Home) -> tuple[QueuedPodReport, ...]:
        found = (entry for entry in entries if entry.home in homes)
        return tuple(_queued(entry, now) for entry in nsmallest(limit, found, key=_turn))

    return QueueReport(
        time=now,
        counts={
            "active": queue.size(Home.ACTIVE),
            "backoff": queue.size(Home.BACKOFF) + queue.size(Home.ERROR_BACKOFF),
            "unschedulable": queue.size(Home.UNSCHEDULABLE),
            "gated": queue.size(Home.GATED),
            "in_flight": queue.size(Home.IN_FLIGHT),
        },
        active=part(Home.ACTIVE),
        backoff=part(Home.BACKOFF, Home.ERROR_BACKOFF),
        unschedulable=part(Home.UNSCHEDULABLE),
        gated=part(Home.GATED),
        in_flight=_flying(queue, now, limit),
        recorded_events=queue.recorded_events,
    )


def _turn(entry: Entry) -> tuple[float, float, float, str]:
    backoff_until = entry.backoff_until if entry.home in (Home.BACKOFF, Home.ERROR_BACKOFF) else 0.0
    return backoff_until, -entry.pod.priority, entry.timestamp, entry.pod.key


def _queued(entry: Entry, now: float) -> QueuedPodReport:
    pod = entry.pod
    is_backing_off = entry.home in (Home.BACKOFF, Home.ERROR_BACKOFF)
    return QueuedPodReport(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        priority=pod.priority,
        attempts=entry.attempts,
        waiting_seconds=max(0.0, now - entry.timestamp),
        # A pod is free in the second after the one in which its backoff ends.
        backoff_seconds=max(0.0, entry.backoff_until + 1 - now) if is_backing_off else 0.0,
        is_error=entry.home is Home.ERROR_BACKOFF,
        rejectors=tuple(sorted(entry.rejectors)),
        pending=tuple(sorted(entry.pending)),
        gated_by=entry.gated_by,
        message=entry.gate_message or entry.message,
    )


def _flying(queue: SchedulingQueue, now: float, limit: int) -> tuple[QueuedPodReport, ...]:
    tickets: Iterable[Ticket] = nsmallest(limit, queue.tickets(), key=lambda ticket: ticket.popped_at)
    return tuple(
        QueuedPodReport(
            namespace=ticket.pod.namespace,
            name=ticket.pod.name,
            uid=ticket.uid,
            priority=ticket.pod.priority,
            attempts=ticket.entry.attempts,
            waiting_seconds=max(0.0, now - ticket.popped_at),
            is_binding=queue.is_binding(ticket),
        )
        for ticket in tickets
    )
