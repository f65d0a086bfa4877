"""A pod in the queue, and the places where it can be.

The heaps of pods that wait for their turn:

Pods that may have to wait for the same others outside stand in one line each:

    active          as QueueSort says
    backoff         by the end of the backoff, then as QueueSort says
    error backoff   by the end of the backoff

A pod that leaves its heap, or moves in it, only gets another place number: its old place is void, and is dropped when
it comes to the top.

Pods that wait for an event, unschedulable or gated, indexed by the plugin that rejected them, in groups of equal pods,
and by key. An event is asked about only those pods whose rejectors registered for it, and only once per group if the
answer holds for all of it; one that a plugin has narrowed down touches only the pods that were named. Pods behind a
gate are groups of their own, so that an event that cannot open it passes them by. So the cost of an event does not grow
with the number of pods that it cannot help.

A pod in flight was evaluated against a cluster that is older than the events that arrived since. They are recorded
and replayed when the pod comes back, so that no wake-up is missed. One list serves all pods in flight: a ticket
remembers the number of the first event after it was given out, and what no ticket needs any more is dropped. A pod
that is past Permit has no rejectors when it fails, and needs no events: it keeps its ticket, but listens no more.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, KeysView, Mapping
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.api.views import QueuedPod
from pilotage.model import Pod
from pilotage.model.pod_stand_in import StandIn, stand_in
from pilotage.observe.decision_log import Step


class SubQueue(StrEnum):
    """Where a queued pod is; every pod has exactly one home."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"
    INCOMPLETE = "incomplete"
    """Outside of all queues: the pod's group does not exist."""
    PENDING = "pending"
    """The pod's group is in its cycle, which the pod came too late for or has left."""


QUEUE_NAMES = {
    SubQueue.ACTIVE: "active",
    SubQueue.BACKOFF: "backoff",
    SubQueue.ERROR_BACKOFF: "backoff",
    SubQueue.UNSCHEDULABLE: "unschedulable",
    SubQueue.GATED: "gated",
    SubQueue.INCOMPLETE: "incomplete",
    SubQueue.PENDING: "pending",
}
"""How metrics call the parts of the queue."""
INCOMING_NAMES = {**QUEUE_NAMES, SubQueue.GATED: "unschedulable"}
"""Their names in the metric of moves, where kube-scheduler does not distinguish gated pods."""

ASIDE = (SubQueue.INCOMPLETE, SubQueue.PENDING)
"""Where members of groups are that are in no queue."""

POD_ADDED = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)


class ExtenderRejection(msgspec.Struct, frozen=True):
    """How many nodes an extender has rejected for one reason, and some of them."""

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
    rejected_nodes: tuple[ExtenderRejection, ...] = ()
    """What extenders rejected in the last attempt; shown to people, too."""
    history: list[Step] | None = None
    """What happened to the pod so far; None as long as nothing out of the ordinary did: it came, and was tried."""

    @property
    def size(self) -> int:
        """How many pods it stands for."""
        return 1

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


def no_extenders(pod: Pod) -> Line:
    return ()


def nothing_is_held(line: Line) -> bool:
    return False


_Place = tuple[tuple[float, ...], int, QueuedPodInfo]
"""Where in a line an entry stands, and the number of that place."""

HEAPS = (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)


class Heaps:
    """Entries whose home is one of `HEAPS`."""

    def __init__(self, sort_key: SortKey, line_of: LineOf = no_extenders) -> None:
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
        first: _Place | None = None
        for line, heap in self._lines[home].items():
            # Those who ask no extenders wait for nobody.
            if heap and not (line and is_held(line)):
                _drop_void(heap, home)
                if heap and (first is None or heap[0] < first):
                    first = heap[0]
        return None if first is None else first[2]

    def holds(self, entry: QueuedPodInfo) -> bool:
        """Whether the entry is in the heap that is its home. Looks at all of it; for tests."""
        heaps = self._lines.get(entry.home, {}).values()
        return any(place == entry.place and e is entry for heap in heaps for _, place, e in heap)

    def _key(self, entry: QueuedPodInfo) -> tuple[float, ...]:
        if entry.home is SubQueue.ERROR_BACKOFF:
            return (entry.backoff_until,)
        order = self._sort_key(QueuedPod(entry.pod, entry.timestamp, entry.attempts, entry.first_attempt_at))
        return (entry.backoff_until, *order) if entry.home is SubQueue.BACKOFF else order


def _drop_void(heap: list[_Place], home: SubQueue) -> None:
    """Until the first place counts, or there is none."""
    while heap:
        _, place, entry = heap[0]
        if entry.place == place and entry.home is home:
            return
        heapq.heappop(heap)


class RecordedEvent(Struct, frozen=True):
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
        """Whether the pod would be judged by what happens now."""
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
        assert self._listening or not self._events, "no ticket can ask for these events any more"


Group = tuple[str, int, int, str]
"""Pods that share namespace, spec and labels, and wait behind the same gate (or none, "")."""


class Alike(dict[str, QueuedPodInfo]):
    """The pods of a group by UID; never empty while it is filed."""

    __slots__ = ("stand_in",)
    stand_in: StandIn
    """Stands for all of them; there is none before `make_stand_in`, as most groups are gone before they need it."""

    def make_stand_in(self) -> StandIn:
        self.stand_in = stand_in(next(iter(self.values())).pod)
        return self.stand_in


class _Filed(NamedTuple):
    """Where an entry was put."""

    key: str
    rejectors: frozenset[str]
    scheduler: str
    group: Group


class UnschedulablePods:
    """Unschedulable and gated entries by UID, with the index over their rejectors."""

    def __init__(self) -> None:
        self._entries: dict[str, QueuedPodInfo] = {}
        self._by_rejector: dict[str, dict[str, dict[Group, Alike]]] = {}
        """By scheduler name and plugin."""
        self._filed_under: dict[str, _Filed] = {}
        self._by_key: dict[str, QueuedPodInfo] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._entries.values())

    def get(self, uid: str) -> QueuedPodInfo | None:
        return self._entries.get(uid)

    def add(self, entry: QueuedPodInfo) -> None:
        pod = entry.pod
        uid, key, scheduler, group = pod.uid, pod.key, pod.spec.scheduler_name, group_of(entry)
        self._entries[uid] = entry
        # The entry's own fields may change while it is filed; remember where it was put.
        self._filed_under[uid] = _Filed(key, entry.rejectors, scheduler, group)
        self._by_key[key] = entry
        by_rejector = self._by_rejector.setdefault(scheduler, {})
        for rejector in sorted(entry.rejectors):
            groups = by_rejector.setdefault(rejector, {})
            alike = groups.get(group)
            if alike is None:
                alike = groups[group] = Alike()
            alike[uid] = entry

    def remove(self, uid: str) -> QueuedPodInfo | None:
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        key, rejectors, scheduler, group = self._filed_under.pop(uid)
        # A pod that was recreated under the same name may have been filed before the old one was removed.
        if self._by_key.get(key) is entry:
            del self._by_key[key]
        by_rejector = self._by_rejector[scheduler]
        for rejector in rejectors:
            groups = by_rejector[rejector]
            alike = groups[group]
            del alike[uid]
            if not alike:
                del groups[group]
                if not groups:
                    del by_rejector[rejector]
        return entry

    def update(self, entry: QueuedPodInfo, pod: Pod) -> None:
        """The pod of an entry has changed; most changes leave it where it was put."""
        was_at = self._filed_under[pod.uid]
        entry.pod = pod
        if was_at.group != group_of(entry) or was_at.rejectors != entry.rejectors:
            self.remove(pod.uid)
            self.add(entry)

    def with_key(self, key: str) -> QueuedPodInfo | None:
        """The waiting pod of this key ("namespace/name")."""
        return self._by_key.get(key)

    def named(self, scheduler_name: str, plugin: str, key: str) -> QueuedPodInfo | None:
        """The waiting pod of this key ("namespace/name"), if this plugin rejected it."""
        entry = self._by_key.get(key)
        if entry is None:
            return None
        filed = self._filed_under[entry.pod.uid]
        return entry if filed.scheduler == scheduler_name and plugin in filed.rejectors else None

    def rejecting(self, scheduler_name: str) -> Mapping[str, Mapping[Group, Alike]]:
        """Plugins that rejected pods that wait, each with these pods by group."""
        return self._by_rejector.get(scheduler_name, {})

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert self._entries.keys() == self._filed_under.keys()
        plugins = [groups for by_rejector in self._by_rejector.values() for groups in by_rejector.values()]
        assert all(pods for groups in plugins for pods in groups.values()) and all(plugins)
        indexed = {uid for groups in plugins for pods in groups.values() for uid in pods}
        assert indexed == {uid for uid, filed in self._filed_under.items() if filed.rejectors}
        assert all(self._entries.get(entry.pod.uid) is entry for entry in self._by_key.values())
        assert self._by_key.keys() == {filed.key for filed in self._filed_under.values()}


def group_of(entry: QueuedPodInfo) -> Group:
    pod = entry.pod
    return pod.namespace, id(pod.spec), id(pod.labels), entry.gated_by
