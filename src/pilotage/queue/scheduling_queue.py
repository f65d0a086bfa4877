"""The scheduling queue: where every pending pod is, and what makes it move.

                 add            hint says Queue, activate, sweep
                  |            +-----------------------------------+
                  v            v                                   |
    gated <--- PreEnqueue -> active <--- backoff over --- backoff  |
                               |                            ^      |
                              pop                           |      |
                               v        give_back           |      |
                           in flight ---------------------> +-> unschedulable
                               |
                              done (bound, deleted, not ours any more)

A pod has exactly one home. `pop` hands out a ticket; whoever holds it must give it back or say that it is done.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from pilotage.api.conditions import is_put_aside
from pilotage.api.events import Action, ClusterEvent, Resource, wildcard
from pilotage.clock import Clock, SteadyClock
from pilotage.model import Pod
from pilotage.observe.decision_log import DecisionLog, shorten
from pilotage.observe.verbosity import QUEUE_MOVES
from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.hints import HintTable, Retry
from pilotage.queue.sub_queues import (
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
    nobody_to_ask,
    nothing_is_held,
)
from pilotage.queue.unschedulable_pods import UnschedulablePods
from pilotage.queue.wake_up import WakeUp

Gatekeeper = Callable[[Pod], tuple[str, str] | None]
"""PreEnqueue: None lets a pod in, otherwise the plugin that gates it and its message."""
OnMove = Callable[[QueuedPodInfo, str], None]
"""Told after an entry has come to another home, and by what: the label of an event, or what else made it move."""

log = logging.getLogger(__name__)

FORCE_ACTIVATE = wildcard("ForceActivate")
LEFTOVER_SWEEP = wildcard("UnschedulableTimeout")
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
ATTEMPT_FAILED = "ScheduleAttemptFailure"
GATES_RECHECKED = "GatesRechecked"
ACTION_FAILED = "FollowUpFailure"

_POD_DELETED = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)

DEFAULT_MAX_WAIT_SECONDS = 300.0
_MOST_ENDED = 1024

Ended = tuple[QueuedPodInfo, float | None, float, str]
"""A pod that left the queue: when it was popped (None: never), when it left, and the node if it was bound."""


class SchedulingQueue:
    """All pending pods of all profiles."""

    def __init__(
        self,
        clock: Clock,
        *,
        sort_key: SortKey,
        gatekeeper: Gatekeeper,
        hints: HintTable,
        backoff: BackoffPolicy | None = None,
        max_wait_seconds: float = DEFAULT_MAX_WAIT_SECONDS,
        pops_backoff: bool = True,
        listeners: Sequence[OnMove] = (),
        line_of: LineOf = nobody_to_ask,
    ) -> None:
        self._clock = SteadyClock(clock)
        self._gatekeeper = gatekeeper
        self._hints = hints
        self._backoff = backoff or BackoffPolicy()
        self._max_wait_seconds = max_wait_seconds
        self._pops_backoff = pops_backoff
        """Whether a pod in backoff is popped when nothing is active (SchedulerPopFromBackoffQ)."""
        self._entries: dict[str, QueuedPodInfo] = {}
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
        """Is there a profile for the pod?"""
        return pod.spec.scheduler_name in self._hints.profiles

    # --- looking -----------------------------------------------------------------------------------------------

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries or uid in self._in_flight.uids

    def size(self, home: SubQueue) -> int:
        return len(self._in_flight) if home is SubQueue.IN_FLIGHT else self._sizes[home]

    def entries(self) -> Iterator[QueuedPodInfo]:
        """Everything that waits, in flight excluded."""
        return iter(self._entries.values())

    def entry(self, uid: str) -> QueuedPodInfo | None:
        return self._entries.get(uid)

    def tickets(self) -> Iterator[Ticket]:
        return self._in_flight.tickets()

    def is_binding(self, ticket: Ticket) -> bool:
        """Is the pod past the last point where a plugin could reject it?"""
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
        if uid in self._entries or uid in self._in_flight.uids:
            self.update(pod, (), pod)
            return
        entry = self._entries[uid] = QueuedPodInfo(pod, self._clock.time())
        if is_put_aside(pod):
            # By the leader before us: whoever would be tried first would cost us as much.
            entry.overruns = 1
            entry.backoff_until = self._backoff.until(entry)
            self._settle(entry, SubQueue.ERROR_BACKOFF, POD_ADDED.label)
        else:
            self._settle(entry, SubQueue.ACTIVE, POD_ADDED.label)

    def update(self, new: Pod, events: Iterable[ClusterEvent], old: Pod) -> None:
        """The pod itself changed: that may be what it was waiting for."""
        if new.uid in self._in_flight.uids:
            for event in events:
                self._in_flight.record(event, old, new)
            return
        entry = self._entries.get(new.uid)
        if entry is None:
            self.add(new)
            return
        if entry.home in HEAPS:
            entry.pod = new
            self._heaps.push(entry)
            return
        self._pool.update(entry, new)
        for event in events:
            retry = self._wake_up.worth_retrying(entry, event, old, new)
            if retry is not Retry.SKIP and self._requeue(entry, retry, event.label):
                return

    def delete(self, uid: str) -> None:
        """The pod is gone or bound by somebody else; one in flight is noticed when its ticket comes back."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._unfile(entry)
            self._ended.append((entry, None, self._clock.time(), ""))

    # --- pop and give back -------------------------------------------------------------------------------------

    @property
    def has_next(self) -> bool:
        """Is there a pod to pop?"""
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
        del self._entries[entry.pod.uid]
        entry.attempts += 1
        entry.must_back_off = False
        entry.home = SubQueue.IN_FLIGHT
        now = self._clock.time()
        if entry.history is not None:
            entry.history.append((now, "tried", entry.attempts, ""))
        return self._in_flight.take(entry, now)

    def put_aside(self, ticket: Ticket, pod: Pod) -> SubQueue:
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
            # It listens no more, so that nobody knows what it has missed.
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
            if entry is not None and entry.home is SubQueue.GATED and self._gatekeeper(entry.pod) is None:
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

    def flush_unschedulable(self) -> int:
        """The safety net: pods that nothing woke for too long are tried again, and marked."""
        now = self._clock.time()
        stale = [e for e in self._pool if now - max(e.timestamp, e.flushed_at) > self._max_wait_seconds]
        for entry in stale:
            entry.was_flushed = True
            entry.flushed_at = now
            self._requeue(entry, Retry.AFTER_BACKOFF, LEFTOVER_SWEEP.label)
        return len(stale)

    # --- homes -------------------------------------------------------------------------------------------------

    def _requeue(self, entry: QueuedPodInfo, retry: Retry, why: str) -> bool:
        """Put the entry where the answer says; True if it left the pool."""
        if entry.home is not SubQueue.IN_FLIGHT:
            self._unfile(entry)
        until = entry.backoff_until
        if retry is Retry.SKIP:
            self._place(entry, SubQueue.GATED if entry.gated_by else SubQueue.UNSCHEDULABLE, why)
        elif until and retry is Retry.AFTER_BACKOFF and not self._backoff.is_over(until, self._clock.time()):
            home = SubQueue.BACKOFF if entry.rejectors and not entry.must_back_off else SubQueue.ERROR_BACKOFF
            # What is not popped from there is asked at the gate when its backoff is over.
            (self._settle if self._pops_backoff else self._place)(entry, home, why)
        else:
            self._settle(entry, SubQueue.ACTIVE, why)
        return entry.home in HEAPS

    def _settle(self, entry: QueuedPodInfo, home: SubQueue, why: str) -> None:
        """Into a heap, unless PreEnqueue gates the pod."""
        gate = self._gatekeeper(entry.pod)
        if gate is None:
            entry.gated_by = entry.gate_message = ""
            self._place(entry, home, why)
            return
        entry.gated_by, entry.gate_message = gate
        entry.rejectors |= {entry.gated_by}
        entry.was_flushed = False
        self._place(entry, SubQueue.GATED, why)

    def _place(self, entry: QueuedPodInfo, home: SubQueue, why: str) -> None:
        entry.home = home
        self._sizes[home] += 1
        now = self._clock.time()
        if entry.history is not None:
            entry.history.append((now, "moved", home, why))
        elif home is not SubQueue.ACTIVE:
            entry.history = [(now, "moved", home, why)]
        if home in HEAPS:
            if home is SubQueue.ACTIVE and entry.first_attempt_at is None:
                entry.first_attempt_at = now
            self._heaps.push(entry)
        else:
            self._pool.add(entry)
        for tell in self._listeners:
            tell(entry, why)
        if log.isEnabledFor(QUEUE_MOVES):
            _log_move(entry, why)

    def _unfile(self, entry: QueuedPodInfo) -> None:
        home = entry.home
        self._sizes[home] -= 1
        if home in HEAPS:
            self._heaps.remove(entry)
        else:
            self._pool.remove(entry.pod.uid)

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self._pool.check()
        self._in_flight.check()
        for home in SubQueue:
            if home is not SubQueue.IN_FLIGHT:
                assert self._sizes[home] == sum(e.home is home for e in self._entries.values()), home
        for uid, entry in self._entries.items():
            assert uid not in self._in_flight.uids, "a pod has exactly one home"
            in_heap = self._heaps.holds(entry)
            assert in_heap or uid in self._pool, "a pod has a home"
            assert not (in_heap and uid in self._pool), "a pod has exactly one home"


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
    """How the attempt ended: by whom the pod was rejected, or (nobody) that it failed."""
    entry = ticket.entry
    if entry.history is None:
        entry.history = entry.beginning(ticket.popped_at)
    shorten(entry.history)
    what = "rejected" if entry.rejectors else "failed"
    entry.history.append((entry.timestamp, what, ",".join(sorted(entry.rejectors)), entry.message))
