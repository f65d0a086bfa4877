"""Random lives of pods in the scheduling queue.

After every step the queue's own invariants must hold and every pod that was added and is not gone has exactly one home.
What the queue decides is compared with slow and simple rules: hints are asked pod by pod instead of class by class,
missed events are kept per pod instead of in one shared list, and the next pod is found by looking at all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pilotage.api import ClusterEvent, Hint
from pilotage.api.events import wildcard
from pilotage.model import Pod
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue, Ticket
from pilotage.testing import pod
from tests.queue.waiting_room import NODE_ADDED, NODE_LABEL, OWN_LABEL, POD_GONE, WaitingRoom, judge

COLOURS = ("red", "green", "blue")
GATE = "Gate"


def same_colour(waiting: Pod, old: Any, new: Any) -> Hint:
    """An event is about some colours and helps pods of these; a pod's own update helps if it became red."""
    about = frozenset(["red"]) if isinstance(new, Pod) else new
    return Hint.QUEUE if waiting.labels["colour"] in about else Hint.SKIP


REGISTERED = {"Coloured": NODE_ADDED, "Own": OWN_LABEL, "Leaving": POD_GONE, GATE: NODE_LABEL}
"""Plugin -> the event that it registered, always with `same_colour` as its hint."""
RED = frozenset(["red"])

colours = st.sampled_from(COLOURS)
newcomers = st.tuples(colours, st.integers(0, 2))
some_colours = st.frozensets(colours, min_size=1)
some_plugins = st.frozensets(st.sampled_from([*REGISTERED, "Deaf"]), max_size=3)
picks = st.integers(0, 10**6)


@dataclass(frozen=True)
class Happening:
    event: ClusterEvent
    about: frozenset[str]
    only_for: str | None = None
    """uid of the pod that it concerns, if it concerns just one."""


ACTIVATED = wildcard("Activated")


@dataclass
class Flight:
    """A pod in flight and everything that happened since it was popped."""

    ticket: Ticket
    pod: Pod
    """Its newest object."""
    missed: list[Happening]


class PodLives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.room = WaitingRoom(*(judge(name, same_colour, event) for name, event in REGISTERED.items()))
        self.queue = self.room.queue
        self.flights: dict[str, Flight] = {}
        self.waiting: dict[str, str] = {}
        """uid -> name of every pod that must be in the queue and not in flight."""
        self.born = 0

    # --- pods come, change and go ------------------------------------------------------------------------------

    @initialize(some=st.lists(newcomers, min_size=3, max_size=6))
    def begin(self, some: list[tuple[str, int]]) -> None:
        for newcomer in some:
            self.add(newcomer)
        self.pop(count=len(some) // 2)

    @rule(newcomer=newcomers)
    def add(self, newcomer: tuple[str, int]) -> None:
        self.born += 1
        name = f"p{self.born}"
        built = pod(name).label("colour", newcomer[0]).priority(newcomer[1]).build()
        self.queue.add(built)
        self.waiting[built.uid] = name

    @precondition(lambda self: self.waiting)
    @rule(pick=picks, colour=colours)
    def update(self, pick: int, colour: str) -> None:
        entry = self._entry(pick)
        new = pod(entry.pod.name).label("colour", colour).priority(entry.pod.priority).build()
        was_waiting = entry.home in (SubQueue.UNSCHEDULABLE, SubQueue.GATED)
        helped = was_waiting and self._worth(entry, new, Happening(OWN_LABEL, RED))
        self.queue.update(new, [OWN_LABEL], entry.pod)
        assert entry.pod is new
        if was_waiting and not helped:
            assert entry.home in (SubQueue.UNSCHEDULABLE, SubQueue.GATED)

    @precondition(lambda self: self.waiting)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        entry = self._entry(pick)
        self.queue.delete(entry.pod.uid)
        del self.waiting[entry.pod.uid]

    # --- attempts ----------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 3))
    def pop(self, count: int) -> None:
        for _ in range(count):
            expected = self._next()
            ticket = self.queue.pop()
            assert (None if ticket is None else ticket.entry) is expected
            if ticket is not None:
                del self.waiting[ticket.uid]
                self.flights[ticket.uid] = Flight(ticket, ticket.pod, [])

    @precondition(lambda self: self.flights)
    @rule(pick=picks, rejectors=some_plugins, pending=some_plugins)
    def give_back(self, pick: int, rejectors: frozenset[str], pending: frozenset[str]) -> None:
        flight = self._land(pick)
        entry = flight.ticket.entry
        home = self.queue.give_back(flight.ticket, flight.pod, rejectors, pending)
        self.waiting[entry.pod.uid] = entry.pod.name
        if not rejectors | pending:
            assert home in (SubQueue.ERROR_BACKOFF, SubQueue.GATED)
            return
        answers = [self._asked(entry, flight.pod, missed) for missed in flight.missed]
        if not any(answers):
            assert home is SubQueue.UNSCHEDULABLE
        elif entry.gated_by:
            assert home is SubQueue.GATED
        else:
            assert home is (SubQueue.ACTIVE if "immediately" in answers else SubQueue.BACKOFF)

    @precondition(lambda self: self.flights)
    @rule(pick=picks, colour=colours)
    def update_in_flight(self, pick: int, colour: str) -> None:
        flight = self.flights[sorted(self.flights)[pick % len(self.flights)]]
        old = flight.pod
        flight.pod = pod(old.name).label("colour", colour).priority(old.priority).build()
        self.queue.update(flight.pod, [OWN_LABEL], old)
        self._note(Happening(OWN_LABEL, RED, only_for=old.uid))

    @precondition(lambda self: self.flights)
    @rule(pick=picks)
    def done(self, pick: int) -> None:
        self.queue.done(self._land(pick).ticket)

    # --- what happens around them ------------------------------------------------------------------------------

    @rule(event=st.sampled_from([NODE_ADDED, POD_GONE, NODE_LABEL]), about=some_colours)
    def happen(self, event: ClusterEvent, about: frozenset[str]) -> None:
        pool = [e for e in self.queue.entries() if e.home in (SubQueue.UNSCHEDULABLE, SubQueue.GATED)]
        helped = {e.pod.uid for e in pool if self._worth(e, e.pod, Happening(event, about))}
        moved = self.room.event(event, None, about)
        left = {e.pod.uid for e in pool if e.home not in (SubQueue.UNSCHEDULABLE, SubQueue.GATED)}
        gated = {e.pod.uid for e in pool if e.gated_by}
        assert left == helped - gated and moved == len(left)
        self._note(Happening(event, about))

    @rule(name=st.integers(1, 12), is_closed=st.booleans())
    def gate(self, name: int, is_closed: bool) -> None:
        if is_closed:
            self.room.gates[f"p{name}"] = GATE
        else:
            self.room.gates.pop(f"p{name}", None)

    @rule(seconds=st.sampled_from([0.3, 1, 2.5, 11]))
    def time_passes(self, seconds: float) -> None:
        self.room.clock.now += seconds
        now = math.floor(self.room.clock.now)
        backing_off = [e for e in self.queue.entries() if e.home in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)]
        freed = [e for e in backing_off if e.backoff_until < now]
        assert self.queue.release_backoff() == len(freed)
        assert all((e.home is SubQueue.ACTIVE) == (e in freed) for e in backing_off)

    @rule(seconds=st.sampled_from([10, 301]))
    def sweep(self, seconds: float) -> None:
        self.room.clock.now += seconds
        pool = [e for e in self.queue.entries() if e.home in (SubQueue.UNSCHEDULABLE, SubQueue.GATED)]
        stale = [e for e in pool if self.room.clock.now - max(e.timestamp, e.flushed_at) > 300]
        assert self.queue.flush_unschedulable() == len(stale)
        for entry in pool:
            assert (entry.home is SubQueue.UNSCHEDULABLE) <= (entry not in stale)

    @precondition(lambda self: self.waiting)
    @rule(pick=picks)
    def activate(self, pick: int) -> None:
        entry = self._entry(pick)
        was_let_in = entry.home in (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)
        self.queue.activate([entry.pod.uid])
        is_gated = entry.pod.name in self.room.gates and not was_let_in
        assert entry.home is (SubQueue.GATED if is_gated else SubQueue.ACTIVE)

    @precondition(lambda self: self.flights)
    @rule(pick=picks)
    def activate_in_flight(self, pick: int) -> None:
        uid = sorted(self.flights)[pick % len(self.flights)]
        self.queue.activate([uid])
        self._note(Happening(ACTIVATED, RED, only_for=uid))

    # --- the slow rules ----------------------------------------------------------------------------------------

    def _note(self, happening: Happening) -> None:
        for flight in self.flights.values():
            flight.missed.append(happening)

    def _asked(self, entry: QueuedPodInfo, as_pod: Pod, happening: Happening) -> str:
        """ "" if the event does not help the pod; else when it may be tried again."""
        if happening.only_for not in (None, as_pod.uid):
            return ""
        if happening.event is ACTIVATED:
            return "after backoff"
        helping = {
            plugin
            for plugin, registered in REGISTERED.items()
            if plugin in entry.rejectors and registered == happening.event
        }
        if not helping or as_pod.labels["colour"] not in happening.about:
            return ""
        return "immediately" if helping & entry.pending else "after backoff"

    def _worth(self, entry: QueuedPodInfo, as_pod: Pod, happening: Happening) -> bool:
        is_own = happening.event == OWN_LABEL
        if entry.gated_by and not is_own and REGISTERED.get(entry.gated_by) != happening.event:
            return False
        return bool(self._asked(entry, as_pod, happening))

    def _next(self) -> QueuedPodInfo | None:
        def turn(entry: QueuedPodInfo) -> tuple[float, ...]:
            return (-entry.pod.priority, entry.timestamp, entry.place)

        entries = list(self.queue.entries())
        active = [e for e in entries if e.home is SubQueue.ACTIVE]
        if active:
            return min(active, key=turn)
        return min(
            (e for e in entries if e.home is SubQueue.BACKOFF), key=lambda e: (e.backoff_until, *turn(e)), default=None
        )

    def _entry(self, pick: int) -> QueuedPodInfo:
        entry = self.queue.entry(sorted(self.waiting)[pick % len(self.waiting)])
        assert entry is not None
        return entry

    def _land(self, pick: int) -> Flight:
        return self.flights.pop(sorted(self.flights)[pick % len(self.flights)])

    # --- always ------------------------------------------------------------------------------------------------

    @invariant()
    def every_pod_has_one_home(self) -> None:
        self.queue.check()
        assert {entry.pod.uid for entry in self.queue.entries()} == set(self.waiting)
        assert {ticket.uid for ticket in self.queue.tickets()} == set(self.flights)
        assert self.queue.size(SubQueue.IN_FLIGHT) == len(self.flights)

    @invariant()
    def events_are_kept_for_pods_in_flight_only(self) -> None:
        longest = max((len(flight.missed) for flight in self.flights.values()), default=0)
        assert self.queue.recorded_events == longest


TestPodLives = PodLives.TestCase
TestPodLives.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
