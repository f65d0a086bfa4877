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

import heapq
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Any

from pilotage.api.events import ClusterEvent, Hint, Resource, wildcard
from pilotage.api.views import QueuedPod
from pilotage.clock import Clock
from pilotage.model import Pod
from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.entry import Entry, Home, Ticket
from pilotage.queue.hints import HintTable, Retry
from pilotage.queue.in_flight import InFlight
from pilotage.queue.pool import WaitingPool

Gatekeeper = Callable[[Pod], tuple[str, str] | None]
"""PreEnqueue: None lets a pod in, otherwise the plugin that gates it and its message."""
SortKey = Callable[[QueuedPod], tuple[float, ...]]

FORCE_ACTIVATE = wildcard("ForceActivate")
LEFTOVER_SWEEP = wildcard("UnschedulableTimeout")
DEFAULT_MAX_WAIT_SECONDS = 300.0

_HEAPS = (Home.ACTIVE, Home.BACKOFF, Home.ERROR_BACKOFF)


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
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self._gatekeeper = gatekeeper
        self._hints = hints
        self._backoff = backoff or BackoffPolicy()
        self._max_wait_seconds = max_wait_seconds
        self._entries: dict[str, Entry] = {}
        self._heaps: dict[Home, list[tuple[tuple[float, ...], int, Entry]]] = {home: [] for home in _HEAPS}
        self._sizes = dict.fromkeys(Home, 0)
        self._pool = WaitingPool()
        self._in_flight = InFlight()
        self._places = 0

    # --- looking -----------------------------------------------------------------------------------------------

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries or uid in self._in_flight

    def size(self, home: Home) -> int:
        return len(self._in_flight) if home is Home.IN_FLIGHT else self._sizes[home]

    def entries(self) -> Iterator[Entry]:
        """Everything that waits, in flight excluded."""
        return iter(self._entries.values())

    def entry(self, uid: str) -> Entry | None:
        return self._entries.get(uid)

    def tickets(self) -> Iterator[Ticket]:
        return self._in_flight.tickets()

    @property
    def recorded_events(self) -> int:
        return self._in_flight.event_count

    # --- arrival, change, departure ----------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A pending pod was seen for the first time; seen again, it still has one place only."""
        if pod.uid in self:
            self.update(pod, (), pod)
            return
        entry = Entry(pod, self._clock.time())
        self._entries[pod.uid] = entry
        self._settle(entry, Home.ACTIVE)

    def update(self, new: Pod, events: Iterable[ClusterEvent], old: Pod) -> None:
        """The pod itself changed: that may be what it was waiting for."""
        if new.uid in self._in_flight:
            for event in events:
                self._in_flight.record(event, old, new)
            return
        entry = self._entries.get(new.uid)
        if entry is None:
            self.add(new)
            return
        if entry.home in _HEAPS:
            entry.pod = new
            self._file(entry)
            return
        self._unfile(entry)
        entry.pod = new
        self._file(entry)
        for event in events:
            retry = self._worth_retrying(entry, event, old, new)
            if retry is not Retry.SKIP and self._requeue(entry, retry):
                return

    def delete(self, uid: str) -> None:
        """The pod is gone or bound by somebody else; one in flight is noticed when its ticket comes back."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._unfile(entry)

    # --- pop and give back -------------------------------------------------------------------------------------

    def pop(self) -> Ticket | None:
        """The pod to schedule next. With nothing active, a pod still in (normal) backoff is taken early."""
        entry = self._first(Home.ACTIVE) or self._first(Home.BACKOFF)
        if entry is None:
            return None
        self._unfile(entry)
        del self._entries[entry.pod.uid]
        entry.attempts += 1
        entry.home = Home.IN_FLIGHT
        return self._in_flight.take(entry, self._clock.time())

    def give_back(self, ticket: Ticket, pod: Pod, rejectors: frozenset[str], pending: frozenset[str]) -> Home:
        """The attempt failed. Without rejectors it was an error; with them, events decide when to try again."""
        if not ticket.is_open:
            raise ValueError(f"the ticket of pod {pod.key} was used already")
        entry = ticket.entry
        entry.pod = pod
        entry.timestamp = self._clock.time()
        entry.rejectors = rejectors | pending
        entry.pending = pending
        entry.gated_by = entry.gate_message = ""
        entry.was_flushed = False
        retry = Retry.AFTER_BACKOFF
        if entry.rejectors:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
            retry = self._missed_a_chance(ticket)
        else:
            entry.consecutive_errors += 1
        entry.backoff_until = self._backoff.until(entry)
        self._in_flight.release(ticket)
        self._entries[pod.uid] = entry
        self._requeue(entry, retry)
        return entry.home

    def done(self, ticket: Ticket) -> None:
        """The pod needs no further attempt."""
        self._in_flight.release(ticket)

    def _missed_a_chance(self, ticket: Ticket) -> Retry:
        best = Retry.SKIP
        for recorded in self._in_flight.missed(ticket):
            best = max(best, self._worth_retrying(ticket.entry, recorded.event, recorded.old, recorded.new))
            if best is Retry.IMMEDIATELY:
                break
        return best

    # --- what moves pods ---------------------------------------------------------------------------------------

    def on_event(self, event: ClusterEvent, old: Any, new: Any) -> int:
        """Something happened: move the waiting pods that it may help; returns how many."""
        if not self._hints.wants(event):
            return 0
        moved = 0
        for entry, retry in self._helped(event, old, new):
            if retry is not Retry.SKIP:
                moved += self._requeue(entry, retry)
        self._in_flight.record(event, old, new)
        return moved

    def _helped(self, event: ClusterEvent, old: Any, new: Any) -> list[tuple[Entry, Retry]]:
        """Each plugin that registered is asked once per class of the pods that it refused."""
        if event.is_wildcard:
            return [(entry, self._worth_retrying(entry, event, old, new)) for entry in self._pool]
        helped: dict[str, tuple[Entry, Retry]] = {}
        for scheduler in self._hints.scheduler_names():
            judges = self._hints.judges(scheduler, event)
            gates = _Gates(judges, partial(self._hints.concerned, scheduler, event, old, new))
            for plugin, hints in judges.items():
                for pods in self._pool.refused_by(scheduler, plugin).values():
                    if self._hints.ask(plugin, hints, next(iter(pods.values())).pod, old, new) is Hint.SKIP:
                        continue
                    for uid, entry in pods.items():
                        if entry.gated_by and not gates.may_open(entry):
                            continue
                        retry = Retry.IMMEDIATELY if plugin in entry.pending else Retry.AFTER_BACKOFF
                        if uid not in helped or helped[uid][1] < retry:
                            helped[uid] = (entry, retry)
        return list(helped.values())

    def _worth_retrying(self, entry: Entry, event: ClusterEvent, old: Any, new: Any) -> Retry:
        """The same question for one pod: its own update, or an event that it missed while in flight."""
        if not entry.rejectors:
            return Retry.AFTER_BACKOFF
        # Pods in flight share one list of missed events, and some of them are about one pod only.
        is_about_one_pod = new is not None and (event.is_wildcard or event.resource is Resource.TARGET_POD)
        if is_about_one_pod and new.uid != entry.pod.uid:
            return Retry.SKIP
        if event.is_wildcard:
            return Retry.AFTER_BACKOFF
        best = Retry.SKIP
        for plugin, hints in self._hints.judges(entry.pod.spec.scheduler_name, event).items():
            if plugin not in entry.rejectors:
                continue
            if self._hints.ask(plugin, hints, entry.pod, old, new) is Hint.QUEUE:
                best = max(best, Retry.IMMEDIATELY if plugin in entry.pending else Retry.AFTER_BACKOFF)
        return best

    def activate(self, uids: Iterable[str]) -> None:
        """Move these pods to the active queue at once, whatever their backoff."""
        for uid in uids:
            entry = self._entries.get(uid)
            if entry is not None and entry.home is not Home.ACTIVE:
                self._unfile(entry)
                self._settle(entry, Home.ACTIVE)
            for ticket in self._in_flight.tickets():
                if ticket.uid == uid:
                    self._in_flight.record(FORCE_ACTIVATE, None, ticket.pod)
                    break

    def recheck_gates(self, uids: Iterable[str]) -> None:
        """Ask PreEnqueue again about gated pods: those that it lets in now wait for what may help them."""
        for uid in uids:
            entry = self._entries.get(uid)
            if entry is not None and entry.home is Home.GATED and self._gatekeeper(entry.pod) is None:
                self._unfile(entry)
                entry.gated_by = entry.gate_message = ""
                self._settle_waiting(entry)

    def release_backoff(self) -> int:
        """Move the pods whose backoff is over to the active queue; returns how many."""
        now = self._clock.time()
        moved = 0
        for home in (Home.BACKOFF, Home.ERROR_BACKOFF):
            while (entry := self._first(home)) is not None and self._backoff.is_over(entry.backoff_until, now):
                self._unfile(entry)
                entry.home = Home.ACTIVE
                self._file(entry)
                moved += 1
        return moved

    def sweep_leftovers(self) -> int:
        """The safety net: pods that nothing woke for too long are tried again, and marked."""
        now = self._clock.time()
        stale = [e for e in self._pool if now - max(e.timestamp, e.flushed_at) > self._max_wait_seconds]
        for entry in stale:
            entry.was_flushed = True
            entry.flushed_at = now
            self._requeue(entry, Retry.AFTER_BACKOFF)
        return len(stale)

    # --- homes -------------------------------------------------------------------------------------------------

    def _requeue(self, entry: Entry, retry: Retry) -> bool:
        """Put the entry where the answer says; True if it left the pool."""
        if entry.home is not Home.IN_FLIGHT:
            self._unfile(entry)
        waits = retry is Retry.AFTER_BACKOFF and not self._backoff.is_over(entry.backoff_until, self._clock.time())
        if retry is Retry.SKIP:
            self._settle_waiting(entry)
        elif waits and entry.backoff_until:
            self._settle(entry, Home.BACKOFF if entry.rejectors else Home.ERROR_BACKOFF)
        else:
            self._settle(entry, Home.ACTIVE)
        return entry.home in _HEAPS

    def _settle(self, entry: Entry, home: Home) -> None:
        """Into a heap, unless PreEnqueue gates the pod."""
        gate = self._gatekeeper(entry.pod)
        if gate is not None:
            entry.gated_by, entry.gate_message = gate
            entry.rejectors |= {entry.gated_by}
            entry.was_flushed = False
            entry.home = Home.GATED
        else:
            entry.gated_by = entry.gate_message = ""
            entry.home = home
            if home is Home.ACTIVE and entry.first_attempt_at is None:
                entry.first_attempt_at = self._clock.time()
        self._file(entry)

    def _settle_waiting(self, entry: Entry) -> None:
        entry.home = Home.GATED if entry.gated_by else Home.UNSCHEDULABLE
        self._file(entry)

    def _file(self, entry: Entry) -> None:
        if entry.home not in _HEAPS:
            self._pool.add(entry)
            self._sizes[entry.home] += 1
            return
        if not entry.place:
            self._sizes[entry.home] += 1
        self._places += 1
        entry.place = self._places
        heapq.heappush(self._heaps[entry.home], (self._heap_key(entry), entry.place, entry))

    def _unfile(self, entry: Entry) -> None:
        self._sizes[entry.home] -= 1
        if entry.home in _HEAPS:
            entry.place = 0
        else:
            self._pool.remove(entry.pod.uid)

    def _heap_key(self, entry: Entry) -> tuple[float, ...]:
        if entry.home is Home.ERROR_BACKOFF:
            return (entry.backoff_until,)
        order = self._sort_key(QueuedPod(entry.pod, entry.timestamp, entry.attempts))
        return (entry.backoff_until, *order) if entry.home is Home.BACKOFF else order

    def _first(self, home: Home) -> Entry | None:
        """The head of a heap; places that their entry has left are dropped on the way."""
        heap = self._heaps[home]
        while heap:
            _, place, entry = heap[0]
            if entry.place == place and entry.home is home:
                return entry
            heapq.heappop(heap)
        return None

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self._pool.check()
        for home in Home:
            if home is not Home.IN_FLIGHT:
                assert self._sizes[home] == sum(e.home is home for e in self._entries.values()), home
        for uid, entry in self._entries.items():
            assert uid not in self._in_flight, "a pod has exactly one home"
            in_heap = any(p == entry.place and e is entry for _, p, e in self._heaps.get(entry.home, []))
            assert in_heap or uid in self._pool, "a pod has a home"
            assert not (in_heap and uid in self._pool), "a pod has exactly one home"
        if not len(self._in_flight):
            assert not self._in_flight.event_count, "nobody can ask for these events any more"


class _Gates:
    """Whether an event may open the gates of pods; each gate is asked when the first pod that it holds is met."""

    __slots__ = ("_ask", "_keys_of", "_registered")

    def __init__(self, registered: Container[str], ask: Callable[[str], frozenset[str] | None]) -> None:
        self._registered = registered
        self._ask = ask
        self._keys_of: dict[str, frozenset[str] | None] = {}

    def may_open(self, entry: Entry) -> bool:
        """Only events that the gate registered for can open it, and only for the pods that it says they concern."""
        gate = entry.gated_by
        if gate not in self._registered:
            return False
        if gate not in self._keys_of:
            self._keys_of[gate] = self._ask(gate)
        keys = self._keys_of[gate]
        return keys is None or (bool(keys) and entry.pod.key in keys)
