"""The queue as it is at one moment, for people and other programs: which pods wait, since when, and for what.

Equal pods may be put together into rows: pods of one owner with the same spec that wait in the same part of the queue
for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, Final, TypeVar

from pilotage.model import Pod
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import QueuedPodInfo, RefusedNodes, SubQueue, Ticket

DEFAULT_LIMIT: Final = 500
_T = TypeVar("_T", QueuedPodInfo, Ticket)


@dataclass(frozen=True, slots=True)
class QueuedPodReport:
    """One pod, or a row of equal pods, and what it waits for. Of a row, this is the pod whose turn is first."""

    namespace: str
    name: str
    uid: str
    priority: int
    attempts: int
    """Of a row, the most."""
    waiting_seconds: float
    """Since it came into the queue, or its last attempt; in flight, since it was popped. Of a row, the longest."""
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
    held_by: tuple[str, ...] = ()
    """Permit plugins that have not allowed the pod yet."""
    node: str = ""
    """Where a pod that a Permit plugin holds will be bound."""
    count: int = 1
    """How many pods the row stands for."""
    refusals: tuple[RefusedNodes, ...] = ()
    """What extenders refused in the last attempt."""


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

    def parts(self) -> dict[str, tuple[QueuedPodReport, ...]]:
        """By the names that people see, those that are furthest first."""
        return {
            "in flight": self.in_flight,
            "active": self.active,
            "backoff": self.backoff,
            "unschedulable": self.unschedulable,
            "gated": self.gated,
        }


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that Permit plugins hold back."""

    node_name: str
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which pods of the queue to report, and how."""

    limit: int = DEFAULT_LIMIT
    """Rows of each part."""
    namespace: str = ""
    """"" for all."""
    is_grouped: bool = False
    held: Mapping[str, Held] = field(default_factory=dict)
    """By UID."""

    def has(self, pod: Pod) -> bool:
        return not self.namespace or pod.namespace == self.namespace


def queue_report(queue: SchedulingQueue, now: float, selection: Selection) -> QueueReport:
    """The queue as it is; of each part at most `limit` rows, those that are next or wait longest first."""
    entries = [entry for entry in queue.entries() if selection.has(entry.pod)]

    def part(*homes: SubQueue) -> tuple[QueuedPodReport, ...]:
        rows = _rows((entry for entry in entries if entry.home in homes), _turn, _alike, selection)
        return tuple(_queued(row, now) for row in rows)

    return QueueReport(
        time=now,
        counts={
            "active": queue.size(SubQueue.ACTIVE),
            "backoff": queue.size(SubQueue.BACKOFF) + queue.size(SubQueue.ERROR_BACKOFF),
            "unschedulable": queue.size(SubQueue.UNSCHEDULABLE),
            "gated": queue.size(SubQueue.GATED),
            "in_flight": queue.size(SubQueue.IN_FLIGHT),
        },
        active=part(SubQueue.ACTIVE),
        backoff=part(SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF),
        unschedulable=part(SubQueue.UNSCHEDULABLE),
        gated=part(SubQueue.GATED),
        in_flight=_flying(queue, now, selection),
        recorded_events=queue.recorded_events,
    )


def _rows(
    items: Iterable[_T], turn: Callable[[_T], Any], alike: Callable[[_T], Hashable], selection: Selection
) -> list[list[_T]]:
    """The first rows, each with its first pod in front."""
    if not selection.is_grouped:
        return [[item] for item in nsmallest(selection.limit, items, key=turn)]
    groups: dict[Hashable, list[_T]] = {}
    for item in items:
        groups.setdefault(alike(item), []).append(item)
    for group in groups.values():
        first = min(range(len(group)), key=lambda at: turn(group[at]))
        group[0], group[first] = group[first], group[0]
    return nsmallest(selection.limit, groups.values(), key=lambda group: turn(group[0]))


def _turn(entry: QueuedPodInfo) -> tuple[float, float, float, str]:
    backoff_until = entry.backoff_until if entry.home in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF) else 0.0
    return backoff_until, -entry.pod.priority, entry.timestamp, entry.pod.key


def _alike(entry: QueuedPodInfo) -> Hashable:
    return *_kin(entry.pod), entry.home, entry.rejectors, entry.gated_by, entry.gate_message or entry.message


def _kin(pod: Pod) -> tuple[Hashable, ...]:
    """Equal in the pods of one workload; pods without an owner are compared by their labels."""
    owner = pod.controller
    return pod.namespace, pod.labels if owner is None else owner.uid, id(pod.spec)


def _queued(row: list[QueuedPodInfo], now: float) -> QueuedPodReport:
    entry = row[0]
    pod = entry.pod
    is_backing_off = entry.home in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)
    return QueuedPodReport(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        priority=pod.priority,
        attempts=max(one.attempts for one in row),
        waiting_seconds=max(0.0, now - min(one.timestamp for one in row)),
        # A pod is free in the second after the one in which its backoff ends.
        backoff_seconds=max(0.0, entry.backoff_until + 1 - now) if is_backing_off else 0.0,
        is_error=entry.home is SubQueue.ERROR_BACKOFF,
        rejectors=tuple(sorted(entry.rejectors)),
        pending=tuple(sorted(entry.pending)),
        gated_by=entry.gated_by,
        message=entry.gate_message or entry.message,
        count=len(row),
        refusals=entry.refusals,
    )


def _flying(queue: SchedulingQueue, now: float, selection: Selection) -> tuple[QueuedPodReport, ...]:
    held = selection.held

    def alike(ticket: Ticket) -> Hashable:
        waiting = held.get(ticket.uid)
        return *_kin(ticket.pod), queue.is_binding(ticket), waiting and waiting.plugins

    def flying(row: list[Ticket]) -> QueuedPodReport:
        ticket = row[0]
        waiting = held.get(ticket.uid)
        return QueuedPodReport(
            namespace=ticket.pod.namespace,
            name=ticket.pod.name,
            uid=ticket.uid,
            priority=ticket.pod.priority,
            attempts=max(one.entry.attempts for one in row),
            waiting_seconds=max(0.0, now - ticket.popped_at),
            is_binding=queue.is_binding(ticket),
            held_by=() if waiting is None else waiting.plugins,
            node="" if waiting is None else waiting.node_name,
            count=len(row),
        )

    tickets = (ticket for ticket in queue.tickets() if selection.has(ticket.pod))
    return tuple(flying(row) for row in _rows(tickets, lambda ticket: ticket.popped_at, alike, selection))
