"""The scheduling queue: where every pending pod is, and what makes it move.

                 add            hint says Queue, activate, flush
                  |            +-----------------------------------+
                  v            v                                   |
    gated <--- PreEnqueue -> active <--- backoff over --- backoff  |
                               |                            ^      |
                              pop                           |      |
                               v        give_back           |      |
                           in flight ---------------------> +-> unschedulable
                               |
                              done (bound, deleted, not ours any more)

A pod has exactly one home. `pop` hands out a ticket; its holder must give it back or say that it is done.
The members of a pod group have one entry together and move as one (`pod_groups`).
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pilotage.api.conditions import exceeded_budget
from pilotage.api.events import Action, ClusterEvent, Resource, wildcard
from pilotage.api.group_members import group_key
from pilotage.clock import Clock, SteadyClock
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.observe.decision_log import DecisionLog, shorten
from pilotage.observe.verbosity import QUEUE_MOVES
from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.hints import HintTable, Retry, WakeUp
from pilotage.queue.pod_groups import GroupMembers, GroupResult, GroupTicket, QueuedGroup
from pilotage.queue.sub_queues import (
    ASIDE,
    HEAPS,
    POD_ADDED,
    Heaps,
    InFlight,
    Line,
    LineOf,
    QueuedPodInfo,
    RecordedEvent,
    SortKey,
    SubQueue,
    Ticket,
    UnschedulablePods,
    no_extenders,
    nothing_is_held,
)

Gatekeeper = Callable[[Pod], tuple[str, str] | None]
"""PreEnqueue: None lets a pod in, otherwise the plugin that gates it and its message."""
OnMove = Callable[[QueuedPodInfo, str], None]
"""Called after an entry has come to another home, and by what: the label of an event, or what else made it move."""

log = logging.getLogger(__name__)

FORCE_ACTIVATE = wildcard("ForceActivate")
UNSCHEDULABLE_FLUSH = wildcard("UnschedulableTimeout")
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
ATTEMPT_FAILED = "ScheduleAttemptFailure"
GATES_RECHECKED = "GatesRechecked"
POD_DELETED = "UnscheduledPodDelete"
ACTION_FAILED = "FollowUpFailure"
RESTORED = "Restored"

_POD_DELETED = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)

DEFAULT_MAX_WAIT_SECONDS = 300.0
_MOST_ENDED = 1024

Ended = tuple[QueuedPodInfo, float | None, float, str]
"""A pod that left the queue: when it was popped (None: never), when it left, and the node if it was bound."""


class QueueSettings(msgspec.Struct, frozen=True):
    """What can be chosen about waiting."""

    backoff: BackoffPolicy = msgspec.field(default_factory=BackoffPolicy)
    max_wait_seconds: float = DEFAULT_MAX_WAIT_SECONDS
    """Pods that nothing woke for so long are tried again."""
    pops_backoff: bool = True
    """A pod in backoff is popped when nothing is active (SchedulerPopFromBackoffQ)."""
    has_groups: bool = True
    """The members of a pod group have one entry together (GenericWorkload)."""


class SchedulingQueue:
    """All pending pods of all profiles."""

    def __init__(
        self,
        clock: Clock,
        *,
        sort_key: SortKey,
        gatekeeper: Gatekeeper,
        hints: HintTable,
        settings: QueueSettings | None = None,
        listeners: Sequence[OnMove] = (),
        line_of: LineOf = no_extenders,
    ) -> None:
        self._clock = SteadyClock(clock)
        self._gatekeeper = gatekeeper
        self._hints = hints
        settings = settings or QueueSettings()
        self._backoff = settings.backoff
        self._max_wait_seconds = settings.max_wait_seconds
        self._flush_from = math.inf
        """Until then nobody in the pool has waited for too long."""
        self._pops_backoff = settings.pops_backoff
        self._entries: dict[str, QueuedPodInfo] = {}
        """By the pod's UID; members of a group lead to the entry of their group."""
        self.has_groups = settings.has_groups
        self._groups = GroupMembers()
        self._heaps = Heaps(sort_key, line_of)
        self._sizes = dict.fromkeys(SubQueue, 0)
        self._pool = UnschedulablePods()
        self.log = DecisionLog()
        self._wake_up = WakeUp(hints, self._pool, clock, self.log)
        self._in_flight = InFlight()
        self._ended: deque[Ended] = deque(maxlen=_MOST_ENDED)
        self._listeners = tuple(listeners)

    def now(self) -> float:
        """The time by which the queue counts; the time of day may have been set meanwhile."""
        return self._clock.time()

    def schedules(self, pod: Pod) -> bool:
        """Whether there is a profile for the pod."""
        return pod.spec.scheduler_name in self._hints.profiles

    # --- looking -----------------------------------------------------------------------------------------------

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries or uid in self._in_flight.uids or uid in self._groups.aside

    def size(self, home: SubQueue) -> int:
        """How many pods are there."""
        if home in ASIDE:
            return sum(member.home is home for member in self._groups.aside.values())
        return len(self._in_flight) if home is SubQueue.IN_FLIGHT else self._sizes[home]

    def entries(self) -> Iterator[QueuedPodInfo]:
        """Every pod that waits, in flight excluded."""
        for uid, entry in self._entries.items():
            yield entry.members[uid] if isinstance(entry, QueuedGroup) else entry
        yield from self._groups.aside.values()

    def entry(self, uid: str) -> QueuedPodInfo | None:
        entry = self._entries.get(uid) or self._groups.aside.get(uid)
        return entry.members[uid] if isinstance(entry, QueuedGroup) else entry

    def groups(self) -> Iterator[QueuedGroup]:
        """The groups that wait, their members inside."""
        return self._groups.entries()

    def group(self, key: str) -> QueuedGroup | None:
        return self._groups.queued.get(key)

    def tickets(self) -> Iterator[Ticket]:
        return self._in_flight.tickets()

    def is_binding(self, ticket: Ticket) -> bool:
        """Whether the pod is past the last point where a plugin could reject it."""
        return not self._in_flight.is_listening(ticket.uid)

    @property
    def recorded_events(self) -> int:
        return self._in_flight.event_count

    def missed_events(self) -> Iterator[RecordedEvent]:
        """What is kept for the pods in flight, oldest first."""
        return self._in_flight.events()

    def ended(self) -> Iterator[Ended]:
        """Pods that left not long ago, the last one first."""
        return reversed(self._ended)

    # --- arrival, change, departure ----------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A pending pod was seen for the first time; seen again, it still has one place only."""
        uid = pod.uid
        if uid in self._entries or uid in self._in_flight.uids or uid in self._groups.aside:
            self.update(pod, (), pod)
            return
        entry = QueuedPodInfo(pod, self._clock.time())
        if pod.spec.scheduling_group is not None and (key := self._group_key(pod)):
            self._join(entry, key)
            return
        self._entries[uid] = entry
        if exceeded_budget(pod):
            # By the leader before us: trying the pod first would cost us as much.
            entry.overruns = 1
            entry.backoff_until = self._backoff.until(entry)
            self._settle(entry, SubQueue.ERROR_BACKOFF, POD_ADDED.label)
        else:
            self._settle(entry, SubQueue.ACTIVE, POD_ADDED.label)

    def restore(self, entry: QueuedPodInfo, fields: Mapping[str, Any]) -> None:
        """A pod or a group that came a moment ago waits as these fields say: it did so in another queue.

        Of a member of a group, only the member's own memory changes.
        """
        is_filed = not isinstance(self._entries.get(entry.pod.uid), QueuedGroup) or isinstance(entry, QueuedGroup)
        if entry.home in ASIDE or not is_filed:
            _set(entry, {**fields, "home": entry.home})
            return
        self._unfile(entry)
        # Those that are restored later stand behind it, as they did there.
        if isinstance(entry, QueuedGroup):
            entry.is_in_order = False
            entry.put_in_order()
            entry.pod = entry.first.pod
            self._groups.queued[entry.key] = self._groups.queued.pop(entry.key)
        else:
            self._entries[entry.pod.uid] = self._entries.pop(entry.pod.uid)
        _set(entry, fields)
        self._place(entry, entry.home, RESTORED)

    def update(self, new: Pod, events: Iterable[ClusterEvent], old: Pod) -> None:
        """The pod itself changed: that may be what it was waiting for."""
        if new.uid in self._in_flight.uids:
            for event in events:
                self._in_flight.record(event, old, new)
            return
        aside = self._groups.aside.get(new.uid)
        if aside is not None:
            aside.pod = new
            return
        entry = self._entries.get(new.uid)
        if entry is None:
            self.add(new)
            return
        waiting = entry
        if isinstance(entry, QueuedGroup):
            waiting = entry.members[new.uid]
            waiting.pod = new
        if entry.home in HEAPS:
            if entry.pod.uid == new.uid:
                entry.pod = new
                self._heaps.push(entry)
            return
        if entry.pod.uid == new.uid:
            self._pool.update(entry, new)
        for event in events:
            retry = self._wake_up.worth_retrying(waiting, event, old, new)
            if retry is not Retry.SKIP and self._requeue(entry, retry, event.label):
                return

    def delete(self, uid: str) -> None:
        """The pod is gone or bound by another scheduler; one in flight is noticed when its ticket comes back."""
        entry = self._entries.pop(uid, None)
        if entry is None and uid in self._groups.aside:
            entry = self._groups.take_aside(uid)
        if isinstance(entry, QueuedGroup):
            entry = self._leave(entry, uid, POD_DELETED)
        elif entry is not None and entry.home not in ASIDE:
            self._unfile(entry)
        if entry is not None:
            self._ended.append((entry, None, self._clock.time(), ""))

    # --- groups ------------------------------------------------------------------------------------------------

    def put_group(self, group: PodGroup) -> None:
        """A group came or changed; pods that waited for it to come enter."""
        key = group.key
        self._groups.known[key] = group
        if (entry := self._groups.queued.get(key)) is not None:
            entry.group = group
        for member in self._groups.take_all(self._groups.incomplete, key):
            self._join(member, key)

    def remove_group(self, key: str) -> None:
        """A group is gone: its pods wait until there is one of that name again."""
        if self._groups.known.pop(key, None) is None:
            return
        members = self._groups.take_all(self._groups.pending, key)
        entry = self._groups.queued.pop(key, None)
        if entry is not None:
            self._unfile(entry)
            for uid in entry.members:
                del self._entries[uid]
            members += entry.members.values()
        for member in members:
            self._set_aside(member, key)

    def _set_aside(self, member: QueuedPodInfo, key: str) -> None:
        self._groups.set_aside(member, key)
        if member.home is SubQueue.INCOMPLETE:
            name = key.partition("/")[2]
            member.gate_message = f'waiting for pod group "{name}": there is none of that name'
            self._notify(member, POD_ADDED.label)

    def _group_key(self, pod: Pod) -> str:
        """The key of the pod's group; "" if it is scheduled by itself."""
        return group_key(pod) if self.has_groups and pod.spec.scheduling_group is not None else ""

    def _join(self, member: QueuedPodInfo, key: str) -> None:
        """A member came, or came back: into the entry of its group, if there is to be one."""
        group, entry = self._groups.known.get(key), self._groups.queued.get(key)
        if group is None or (entry is None and key in self._groups.in_cycle):
            self._set_aside(member, key)
            return
        if entry is None:
            entry = QueuedGroup(member.pod, member.timestamp, SubQueue.PENDING, group=group, members={})
            entry.insert(member)
            self._enter(entry, SubQueue.ACTIVE, POD_ADDED.label)
            return
        self._entries[member.pod.uid] = entry
        entry.insert(member)
        member.home = entry.home
        self._sizes[entry.home] += 1
        # Whom PreEnqueue let in before, it lets in now: only the newcomer is asked, until nothing gates the group.
        is_gated = self._is_gated(member)
        if is_gated and (entry.home is not SubQueue.GATED or entry.gated_by != member.gated_by):
            # The last one that is gated speaks for all; equal gates need not be filed again.
            self._unfile(entry)
            self._gate(entry, member, POD_ADDED.label)
        elif is_gated:
            self._notify(member, POD_ADDED.label)
        elif entry.home is SubQueue.GATED:
            self._requeue(entry, Retry.AFTER_BACKOFF, POD_ADDED.label)

    def _enter(self, entry: QueuedGroup, home: SubQueue, why: str) -> None:
        self._groups.queued[entry.key] = entry
        for uid in entry.members:
            self._entries[uid] = entry
        self._settle(entry, home, why)

    def _leave(self, entry: QueuedGroup, uid: str, why: str) -> QueuedPodInfo:
        """A member is gone; without it there may be too few of them."""
        if entry.home not in HEAPS and len(entry.members) > 1 and entry.pod.uid != uid:
            # A gated entry stays gated without it, too.
            self._sizes[entry.home] -= 1
            return entry.members.pop(uid)
        self._unfile(entry)
        member = entry.members.pop(uid)
        if not entry.members:
            del self._groups.queued[entry.key]
            return member
        if entry.pod.uid == uid:
            entry.pod = entry.first.pod
        if entry.home is SubQueue.UNSCHEDULABLE:
            self._place(entry, entry.home, why)
        elif entry.home is SubQueue.GATED:
            self._settle(entry, SubQueue.ACTIVE, why)
        elif self._is_gated(entry.first):
            # What PreEnqueue says of the others hangs on the number of members alone: one answer is that of all.
            self._gate(entry, entry.first, why)
        else:
            self._place(entry, entry.home, why)
        return member

    def return_group(self, ticket: GroupTicket, result: GroupResult, *, is_whole: bool = True) -> None:
        """The cycle of a group is over: those of its members who are not bound, or came meanwhile, wait together.

        Left over by a group that was placed, they are tried again at once. Those of a group that was rejected wait for
        some time, and for nothing else. `is_whole` if no member that was tried failed.
        """
        old, key = ticket.entry, ticket.entry.key
        if ticket.is_open:
            ticket.is_open = False
            self._groups.in_cycle.discard(key)
        group = self._groups.known.get(key)
        members = self._groups.take_all(self._groups.pending, key)
        if group is None or not members:
            return
        entry = QueuedGroup(members[0].pod, old.timestamp, SubQueue.IN_FLIGHT, group=group, members={})
        for member in members:
            entry.insert(member)
        entry.put_in_order()
        entry.pod = entry.first.pod
        entry.attempts, entry.first_attempt_at, entry.history = old.attempts, old.first_attempt_at, old.history
        if result is not GroupResult.PLACED or is_whole:
            entry.timestamp = self._clock.time()
        if result is not GroupResult.PLACED:
            is_error = result is GroupResult.FAILED
            entry.consecutive_errors = old.consecutive_errors + 1 if is_error else 0
            entry.unschedulable_count = old.unschedulable_count + (not is_error)
        entry.backoff_until = self._backoff.until(entry)
        self._enter_after_cycle(entry)

    def _enter_after_cycle(self, entry: QueuedGroup) -> None:
        self._groups.queued[entry.key] = entry
        for uid in entry.members:
            self._entries[uid] = entry
        self._requeue(entry, Retry.AFTER_BACKOFF, ATTEMPT_FAILED)

    def _pop_group(self, entry: QueuedGroup, now: float) -> GroupTicket | None:
        members = []
        entry.put_in_order()
        for uid, member in entry.members.items():
            del self._entries[uid]
            member.attempts += 1
            member.home = SubQueue.IN_FLIGHT
            if member.history is not None:
                member.history.append((now, "tried", member.attempts, ""))
            members.append(self._in_flight.take(member, now))
        del self._groups.queued[entry.key]
        self._groups.in_cycle.add(entry.key)
        return GroupTicket(entry=entry, popped_at=now, events_from=0, members=members)

    # --- pop and give back -------------------------------------------------------------------------------------

    @property
    def has_next(self) -> bool:
        """Whether there is a pod to pop."""
        sizes = self._sizes
        return sizes[SubQueue.ACTIVE] > 0 or (self._pops_backoff and sizes[SubQueue.BACKOFF] > 0)

    def pop(self, is_held: Callable[[Line], bool] = nothing_is_held) -> Ticket | None:
        """The pod to schedule next, of those in no line that is held.

        With nothing active, a pod still in (normal) backoff is taken early.
        """
        entry = self._heaps.first(SubQueue.ACTIVE, is_held)
        if entry is None and self._pops_backoff and not self._sizes[SubQueue.ACTIVE]:
            entry = self._heaps.first(SubQueue.BACKOFF, is_held)
            if entry is not None:
                self._unfile(entry)
                self._place(entry, SubQueue.ACTIVE, POP_FROM_BACKOFF)
        if entry is None:
            return None
        self._unfile(entry)
        entry.attempts += 1
        entry.must_back_off = False
        entry.home = SubQueue.IN_FLIGHT
        now = self._clock.time()
        if entry.history is not None:
            entry.history.append((now, "tried", entry.attempts, ""))
        if isinstance(entry, QueuedGroup):
            return self._pop_group(entry, now)
        del self._entries[entry.pod.uid]
        return self._in_flight.take(entry, now)

    def give_back_over_budget(self, ticket: Ticket, pod: Pod) -> SubQueue:
        """The attempt used up the CPU time of its cycle: nothing but time makes it worth another one."""
        ticket.entry.overruns += 1
        return self._give_back(ticket, pod, frozenset(), frozenset())

    def give_back(self, ticket: Ticket, pod: Pod, rejectors: frozenset[str], pending: frozenset[str]) -> SubQueue:
        """The attempt failed. Without rejectors it was an error; with them, events decide when to try again."""
        ticket.entry.overruns = 0
        return self._give_back(ticket, pod, rejectors, pending)

    def _give_back(self, ticket: Ticket, pod: Pod, rejectors: frozenset[str], pending: frozenset[str]) -> SubQueue:
        if not ticket.is_open:
            raise ValueError(f"the ticket of pod {pod.key} was used already")
        entry = ticket.entry
        entry.pod = pod
        entry.timestamp = self._clock.time()
        entry.rejectors = rejectors | pending
        entry.pending = pending
        entry.gated_by = entry.gate_message = ""
        entry.was_flushed = False
        _note_rejection(ticket)
        retry = Retry.AFTER_BACKOFF
        if entry.rejectors:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
            retry = Retry.AFTER_BACKOFF if entry.must_back_off else self._missed_a_chance(ticket)
        else:
            entry.consecutive_errors += 1
        entry.backoff_until = self._backoff.until(entry)
        self._in_flight.release(ticket)
        if key := self._group_key(pod):
            self._join(entry, key)
            return entry.home
        self._entries[pod.uid] = entry
        self._requeue(entry, retry, ATTEMPT_FAILED)
        return entry.home

    def needs_no_events(self, ticket: Ticket) -> None:
        """No plugin can reject the pod any more: whatever happens from now on need not be kept for it."""
        self._in_flight.stop_listening(ticket)

    def done(self, ticket: Ticket, node_name: str = "") -> None:
        """The pod needs no further attempt: it was bound, or there is nothing (more) to do."""
        self._in_flight.release(ticket)
        self._ended.append((ticket.entry, ticket.popped_at, self._clock.time(), node_name))

    def _missed_a_chance(self, ticket: Ticket) -> Retry:
        if self.is_binding(ticket):
            # It listens no more, so what it has missed is not known.
            return Retry.AFTER_BACKOFF
        best = Retry.SKIP
        for recorded in self._in_flight.missed(ticket):
            retry = self._wake_up.worth_retrying(ticket.entry, recorded.event, recorded.old, recorded.new)
            best = max(best, retry)
            if best is Retry.IMMEDIATELY:
                break
        return best

    # --- what moves pods ---------------------------------------------------------------------------------------

    def on_event(self, event: ClusterEvent, old: Any, new: Any, *, up_to_priority: int | None = None) -> int:
        """Something happened: move the waiting pods that it may help; returns how many.

        With `up_to_priority`, more important pods are left where they are: the event means nothing to them.
        """
        routes = self._hints.routes(event)
        if not routes and not event.is_wildcard:
            return 0
        moved = 0
        for entry, retry in self._wake_up.pods_to_requeue(event, routes, old, new):
            if up_to_priority is None or entry.pod.priority <= up_to_priority:
                moved += self._requeue(entry, retry, event.label)
        self._in_flight.record(event, old, new)
        return moved

    def on_nomination_removed(self, pod: Pod, node_name: str) -> None:
        """A place is not kept for this pod any more. It was never kept from more important ones."""
        # The API server may not have the nomination yet.
        nominated = replace(pod, status=replace(pod.status, nominated_node_name=node_name))
        self.on_event(_POD_DELETED, nominated, None, up_to_priority=pod.priority)

    def activate(self, uids: Iterable[str]) -> None:
        """Move these pods to the active queue at once, whatever their backoff."""
        for uid in uids:
            entry, ticket = self._entries.get(uid), self._in_flight.get(uid)
            if ticket is not None:
                self._in_flight.record(FORCE_ACTIVATE, None, ticket.pod)
            elif entry is None or entry.home is SubQueue.ACTIVE:
                continue
            elif entry.home in HEAPS and self._pops_backoff:
                # It has passed the gates on its way into backoff.
                self._unfile(entry)
                self._place(entry, SubQueue.ACTIVE, FORCE_ACTIVATE.label)
            else:
                self._unfile(entry)
                self._settle(entry, SubQueue.ACTIVE, FORCE_ACTIVATE.label)

    def back_off(self, uids: Iterable[str]) -> None:
        """What followed the last attempt of these pods failed: try them again when their backoff is over, not before.

        The backoff begins now and grows with every attempt in vain, as that of any other pod.
        """
        for uid in uids:
            entry, ticket = self._entries.get(uid), self._in_flight.get(uid)
            if ticket is not None:
                ticket.entry.must_back_off = True
            elif entry is not None and entry.home not in HEAPS:
                entry.must_back_off = True
                entry.backoff_until = self._backoff.until(entry, self._clock.time())
                self._requeue(entry, Retry.AFTER_BACKOFF, ACTION_FAILED)

    def recheck_gates(self, uids: Iterable[str]) -> None:
        """Ask PreEnqueue again about gated pods: those that it lets in now wait for what may help them."""
        for uid in uids:
            entry = self._entries.get(uid)
            if entry is None or entry.home is not SubQueue.GATED:
                continue
            if isinstance(entry, QueuedGroup):
                # It waits for time alone, which it has done if nothing gates it any more.
                self._requeue(entry, Retry.AFTER_BACKOFF, GATES_RECHECKED)
            elif self._gatekeeper(entry.pod) is None:
                self._unfile(entry)
                entry.gated_by = entry.gate_message = ""
                self._place(entry, SubQueue.UNSCHEDULABLE, GATES_RECHECKED)

    def release_backoff(self) -> int:
        """Move the pods whose backoff is over to the active queue; returns how many."""
        now = self._clock.time()
        moved = 0
        for home in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF):
            while (entry := self._heaps.first(home)) is not None and self._backoff.is_over(entry.backoff_until, now):
                self._unfile(entry)
                if self._pops_backoff:
                    self._place(entry, SubQueue.ACTIVE, BACKOFF_COMPLETE)
                else:
                    self._settle(entry, SubQueue.ACTIVE, BACKOFF_COMPLETE)
                moved += 1
        return moved

    def quiet_backoff_seconds(self) -> float:
        """How long `release_backoff` will move nobody who waits now."""
        heads = [self._heaps.first(home) for home in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)]
        until = min((entry.backoff_until for entry in heads if entry is not None), default=math.inf)
        return until - self._clock.time()

    def quiet_flush_seconds(self) -> float:
        """How long `flush_unschedulable` will move nobody who waits now, or less."""
        return self._flush_from - self._clock.time() if len(self._pool) else math.inf

    def flush_unschedulable(self) -> int:
        """The safety net: pods that nothing woke for too long are tried again, and marked."""
        now = self._clock.time()
        if now < self._flush_from:
            return 0
        waiting = list(self._pool)
        stale = [e for e in waiting if now - max(e.timestamp, e.flushed_at) > self._max_wait_seconds]
        self._flush_from = math.inf
        for entry in stale:
            entry.was_flushed = True
            entry.flushed_at = now
        for entry in waiting:
            self._note_flush(entry)
        for entry in stale:
            self._requeue(entry, Retry.AFTER_BACKOFF, UNSCHEDULABLE_FLUSH.label)
        return len(stale)

    def _note_flush(self, entry: QueuedPodInfo) -> None:
        """An entry is in the pool."""
        self._flush_from = min(self._flush_from, max(entry.timestamp, entry.flushed_at) + self._max_wait_seconds)

    # --- homes -------------------------------------------------------------------------------------------------

    def _requeue(self, entry: QueuedPodInfo, retry: Retry, why: str) -> bool:
        """Put the entry where the answer says; True if it left the pool."""
        if entry.home is not SubQueue.IN_FLIGHT:
            self._unfile(entry)
        until = entry.backoff_until
        if retry is Retry.SKIP:
            self._place(entry, SubQueue.GATED if entry.gated_by else SubQueue.UNSCHEDULABLE, why)
        elif until and retry is Retry.AFTER_BACKOFF and not self._backoff.is_over(until, self._clock.time()):
            may_be_early = entry.rejectors and not entry.must_back_off and not isinstance(entry, QueuedGroup)
            home = SubQueue.BACKOFF if may_be_early else SubQueue.ERROR_BACKOFF
            # What is not popped from there is asked at the gate when its backoff is over.
            (self._settle if self._pops_backoff else self._place)(entry, home, why)
        else:
            self._settle(entry, SubQueue.ACTIVE, why)
        return entry.home in HEAPS

    def _settle(self, entry: QueuedPodInfo, home: SubQueue, why: str) -> None:
        """Into a heap, unless PreEnqueue gates the pod, or one pod of the group."""
        if isinstance(entry, QueuedGroup):
            gated = next(filter(self._is_gated, _asked(entry)), None)
            if gated is not None:
                self._gate(entry, gated, why)
                return
            entry.gated_by = entry.gate_message = ""
            entry.rejectors = frozenset()
            entry.pod = entry.first.pod
        elif self._is_gated(entry):
            home = SubQueue.GATED
        self._place(entry, home, why)

    def _is_gated(self, entry: QueuedPodInfo) -> bool:
        """Ask PreEnqueue about a pod, and note what it says."""
        gate = self._gatekeeper(entry.pod)
        if gate is None:
            entry.gated_by = entry.gate_message = ""
            return False
        entry.gated_by, entry.gate_message = gate
        entry.rejectors |= {entry.gated_by}
        entry.was_flushed = False
        return True

    def _gate(self, entry: QueuedPodInfo, gated: QueuedPodInfo, why: str) -> None:
        """One pod is gated, and with it its group."""
        entry.pod, entry.gated_by, entry.gate_message = gated.pod, gated.gated_by, gated.gate_message
        entry.rejectors = gated.rejectors
        entry.was_flushed = False
        self._place(entry, SubQueue.GATED, why)

    def _place(self, entry: QueuedPodInfo, home: SubQueue, why: str) -> None:
        was_at, entry.home = entry.home, home
        self._sizes[home] += 1 if type(entry) is QueuedPodInfo else entry.size
        if isinstance(entry, QueuedGroup) and was_at is not home:
            for member in entry.members.values():
                member.home = home
        if entry.history is not None or home is not SubQueue.ACTIVE:
            if entry.history is None:
                entry.history = []
            entry.history.append((self._clock.time(), "moved", home, why))
        if home in HEAPS:
            if home is SubQueue.ACTIVE and entry.first_attempt_at is None:
                entry.first_attempt_at = self._clock.time()
            self._heaps.push(entry)
        else:
            self._pool.add(entry)
            self._note_flush(entry)
        self._notify(entry, why)
        if log.isEnabledFor(QUEUE_MOVES):
            _log_move(entry, why)

    def _notify(self, entry: QueuedPodInfo, why: str) -> None:
        for tell in self._listeners:
            tell(entry, why)

    def _unfile(self, entry: QueuedPodInfo) -> None:
        home = entry.home
        self._sizes[home] -= 1 if type(entry) is QueuedPodInfo else entry.size
        if home in HEAPS:
            self._heaps.remove(entry)
        else:
            self._pool.remove(entry.pod.uid)

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self._pool.check()
        self._in_flight.check()
        for home in SubQueue:
            if home not in (SubQueue.IN_FLIGHT, *ASIDE):
                assert self._sizes[home] == sum(e.home is home for e in self._entries.values()), home
        for uid, entry in self._entries.items():
            assert uid not in self._in_flight.uids and uid not in self._groups.aside, "a pod has exactly one home"
            in_heap, in_pool = self._heaps.holds(entry), entry.pod.uid in self._pool
            assert in_heap or in_pool, "a pod has a home"
            assert not (in_heap and in_pool), "a pod has exactly one home"
            if isinstance(entry, QueuedGroup):
                assert uid in entry.members and self._groups.queued[entry.key] is entry
                assert all(member.home is entry.home for member in entry.members.values())


def _set(entry: QueuedPodInfo, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        setattr(entry, name, value)


def _asked(entry: QueuedGroup) -> Iterator[QueuedPodInfo]:
    """Whom PreEnqueue is asked about: the member that it gates now, if there is one, and then all."""
    speaker = entry.members.get(entry.pod.uid) if entry.gated_by else None
    if speaker is not None:
        yield speaker
    for member in entry.members.values():
        if member is not speaker:
            yield member


def _log_move(entry: QueuedPodInfo, why: str) -> None:
    log.log(
        QUEUE_MOVES,
        "pod moved: pod=%s queue=%s event=%s attempts=%d plugins=%s gated_by=%s",
        entry.pod.key,
        entry.home.value.replace(" ", "-"),
        why,
        entry.attempts,
        ",".join(sorted(entry.rejectors)),
        entry.gated_by,
    )


def _note_rejection(ticket: Ticket) -> None:
    """How the attempt ended: which plugins rejected the pod, or (none) that it failed."""
    entry = ticket.entry
    if entry.history is None:
        entry.history = entry.beginning(ticket.popped_at)
    shorten(entry.history)
    what = "rejected" if entry.rejectors else "failed"
    entry.history.append((entry.timestamp, what, ",".join(sorted(entry.rejectors)), entry.message))
