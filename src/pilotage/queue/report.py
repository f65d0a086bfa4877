"""The queue as it is at one moment, for people and other programs: which pods wait, since when, and for what.

Equal pods may be put together into rows: pods of one owner with the same spec that wait in the same part of the queue
for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, Final, TypeVar

from msgspec import Struct

from pilotage.api.group_members import group_key
from pilotage.model import Pod
from pilotage.queue.pod_groups import QueuedGroup, gate_text
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import ASIDE, ExtenderRejection, QueuedPodInfo, SubQueue, Ticket

DEFAULT_LIMIT: Final = 500
_T = TypeVar("_T", QueuedPodInfo, Ticket)


class QueuedMember(Struct, frozen=True):
    """A member of a pod group that waits with it."""

    name: str
    uid: str
    attempts: int
    rejectors: tuple[str, ...] = ()
    message: str = ""
    """Why it had no place in the last attempt of its group."""


class QueuedPodReport(Struct, frozen=True):
    """One pod, a row of equal pods, or a pod group, and what it waits for. Of a row, the pod whose turn is first."""

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
    asked: tuple[str, ...] = ()
    """Extenders whose answer the pod, in flight, waits for."""
    count: int = 1
    """How many pods the row stands for."""
    rejected_nodes: tuple[ExtenderRejection, ...] = ()
    """What extenders rejected in the last attempt."""
    kind: str = "Pod"
    """Or `PodGroup`: then `count` is the number of its members that wait."""
    pod_group: str = ""
    """Of a member that is by itself (in flight): the name of its group."""
    min_count: int = 0
    """Of a gang: how many members must have a place together."""
    exist: int = 0
    """Of a group: members that run, and members that wait."""
    members: tuple[QueuedMember, ...] = ()
    """Those that wait, in the order in which they are placed; not in rows for people."""


class QueueReport(Struct, frozen=True):
    """All parts of the queue; lists may be cut, the counts are not."""

    time: float
    counts: dict[str, int]
    active: tuple[QueuedPodReport, ...] = ()
    backoff: tuple[QueuedPodReport, ...] = ()
    unschedulable: tuple[QueuedPodReport, ...] = ()
    gated: tuple[QueuedPodReport, ...] = ()
    in_flight: tuple[QueuedPodReport, ...] = ()
    incomplete: tuple[QueuedPodReport, ...] = ()
    """Members of groups that do not exist, by group."""
    pending: tuple[QueuedPodReport, ...] = ()
    """Members that wait for the end of their group's cycle, by group."""
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
            "incomplete": self.incomplete,
            "pending": self.pending,
        }


class Held(Struct, frozen=True):
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
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By UID: the extenders that are asked."""
    member_count: Callable[[str], int] = field(default=lambda key: 0)
    """How many members of a group exist, by its key."""

    def has(self, pod: Pod) -> bool:
        return not self.namespace or pod.namespace == self.namespace


def queue_report(queue: SchedulingQueue, now: float, selection: Selection) -> QueueReport:
    """The queue as it is; of each part at most `limit` rows, those that are next or wait longest first."""
    groups = [group for group in queue.groups() if selection.has(group.pod)]
    members = {uid for group in groups for uid in group.members}
    pods = [entry for entry in queue.entries() if entry.pod.uid not in members and selection.has(entry.pod)]
    entries: list[QueuedPodInfo] = [*pods, *groups]

    def part(*homes: SubQueue) -> tuple[QueuedPodReport, ...]:
        rows = _rows((entry for entry in entries if entry.home in homes), _turn, _alike, selection)
        return tuple(_queued(row, now, selection) for row in rows)

    def aside(home: SubQueue) -> tuple[QueuedPodReport, ...]:
        waiting: dict[str, list[QueuedPodInfo]] = {}
        for entry in pods:
            if entry.home is home:
                waiting.setdefault(group_key(entry.pod), []).append(entry)
        return tuple(_aside(key, waiting[key], now, selection) for key in nsmallest(selection.limit, waiting))

    return QueueReport(
        time=now,
        counts={
            "active": queue.size(SubQueue.ACTIVE),
            "backoff": queue.size(SubQueue.BACKOFF) + queue.size(SubQueue.ERROR_BACKOFF),
            "unschedulable": queue.size(SubQueue.UNSCHEDULABLE),
            "gated": queue.size(SubQueue.GATED),
            "in_flight": queue.size(SubQueue.IN_FLIGHT),
            **({home.value: queue.size(home) for home in ASIDE} if queue.has_groups else {}),
        },
        active=part(SubQueue.ACTIVE),
        backoff=part(SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF),
        unschedulable=part(SubQueue.UNSCHEDULABLE),
        gated=part(SubQueue.GATED),
        in_flight=_flying(queue, now, selection),
        incomplete=aside(SubQueue.INCOMPLETE),
        pending=aside(SubQueue.PENDING),
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
    if isinstance(entry, QueuedGroup):
        return entry.key
    return *_kin(entry.pod), entry.home, entry.rejectors, entry.gated_by, entry.gate_message or entry.message


def _kin(pod: Pod) -> tuple[Hashable, ...]:
    """Equal in the pods of one workload; pods without an owner are compared by their labels."""
    owner = pod.controller
    return pod.namespace, pod.labels if owner is None else owner.uid, id(pod.spec)


def _queued(row: list[QueuedPodInfo], now: float, selection: Selection) -> QueuedPodReport:
    entry = row[0]
    if isinstance(entry, QueuedGroup):
        return _queued_group(entry, now, selection)
    pod = entry.pod
    return QueuedPodReport(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        priority=pod.priority,
        attempts=max(one.attempts for one in row),
        waiting_seconds=max(0.0, now - min(one.timestamp for one in row)),
        backoff_seconds=_backoff_left(entry, now),
        is_error=entry.home is SubQueue.ERROR_BACKOFF,
        rejectors=tuple(sorted(entry.rejectors)),
        pending=tuple(sorted(entry.pending)),
        gated_by=entry.gated_by,
        message=entry.gate_message or entry.message,
        count=len(row),
        rejected_nodes=entry.rejected_nodes,
    )


def _backoff_left(entry: QueuedPodInfo, now: float) -> float:
    # A pod is free in the second after the one in which its backoff ends.
    is_backing_off = entry.home in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)
    return max(0.0, entry.backoff_until + 1 - now) if is_backing_off else 0.0


def _queued_group(entry: QueuedGroup, now: float, selection: Selection) -> QueuedPodReport:
    group, members = entry.group, list(entry.members.values())
    exist = selection.member_count(entry.key)
    message = "" if entry.gated_by else next((member.message for member in members if member.message), "")
    return QueuedPodReport(
        namespace=group.namespace,
        name=group.name,
        uid=group.uid,
        priority=group.priority,
        attempts=entry.attempts,
        waiting_seconds=max(0.0, now - entry.timestamp),
        backoff_seconds=_backoff_left(entry, now),
        rejectors=tuple(sorted({rejector for member in members for rejector in member.rejectors})),
        gated_by=entry.gated_by,
        message=gate_text(entry, exist) if entry.gated_by else message,
        count=len(members),
        kind="PodGroup",
        min_count=group.min_count if group.is_gang else 0,
        exist=exist,
        members=_members(members, selection),
    )


def _aside(key: str, members: list[QueuedPodInfo], now: float, selection: Selection) -> QueuedPodReport:
    """Members that are in no queue; there may be no such group."""
    namespace, _, name = key.partition("/")
    return QueuedPodReport(
        namespace=namespace,
        name=name,
        uid="",
        priority=max(member.pod.priority for member in members),
        attempts=max(member.attempts for member in members),
        waiting_seconds=max(0.0, now - min(member.timestamp for member in members)),
        message=members[0].gate_message,
        count=len(members),
        kind="PodGroup",
        exist=selection.member_count(key),
        members=_members(members, selection),
    )


def _members(members: list[QueuedPodInfo], selection: Selection) -> tuple[QueuedMember, ...]:
    if selection.is_grouped:
        return ()
    return tuple(
        QueuedMember(one.pod.name, one.pod.uid, one.attempts, tuple(sorted(one.rejectors)), one.message)
        for one in members[: selection.limit]
    )


def _flying(queue: SchedulingQueue, now: float, selection: Selection) -> tuple[QueuedPodReport, ...]:
    held, asked = selection.held, selection.asked

    def alike(ticket: Ticket) -> Hashable:
        waiting = held.get(ticket.uid)
        return *_kin(ticket.pod), queue.is_binding(ticket), waiting and waiting.plugins, asked.get(ticket.uid)

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
            asked=asked.get(ticket.uid, ()),
            count=len(row),
            pod_group=group_key(ticket.pod).partition("/")[2] if queue.has_groups else "",
        )

    tickets = (ticket for ticket in queue.tickets() if selection.has(ticket.pod))
    return tuple(flying(row) for row in _rows(tickets, lambda ticket: ticket.popped_at, alike, selection))
