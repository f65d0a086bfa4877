"""A queue with a clock that stands still, gates that open and close, and plugins whose hints a test can script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pilotage.api import Action, ClusterEvent, Hint, Plugin, Resource, on_event
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics
from pilotage.plugins import PrioritySort
from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.hints import HintTable
from pilotage.queue.scheduling_queue import QueueSettings, SchedulingQueue
from pilotage.queue.sub_queues import SubQueue, Ticket
from pilotage.testing import PodBuilder

Answer = Callable[[Pod, Any, Any], Hint]

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
POD_GONE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
OWN_LABEL = ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)


class StoppedClock:
    """A clock that is moved by hand."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def always(pod: Pod, old: Any, new: Any) -> Hint:
    return Hint.QUEUE


def never(pod: Pod, old: Any, new: Any) -> Hint:
    return Hint.SKIP


def judge(plugin_name: str, answer: Answer = always, event: ClusterEvent = NODE_ADDED) -> Plugin:
    """A plugin that registered one event and answers as it is told."""

    class Judge(Plugin):
        name = plugin_name

        @on_event(event.resource, event.action)
        def judged(self, pod: Pod, old: Any, new: Any) -> Hint:
            return answer(pod, old, new)

    return Judge()


class WaitingRoom:
    """The queue under test and what surrounds it."""

    def __init__(
        self,
        *plugins: Plugin,
        backoff: BackoffPolicy | None = None,
        others: dict[str, Sequence[Plugin]] | None = None,
    ) -> None:
        self.clock = StoppedClock()
        self.gates: dict[str, str] = {}
        """Name of a pod -> plugin that gates it."""
        self.asked_at_the_gate: list[str] = []
        self.metrics = Metrics()
        self.moves: list[tuple[str, str]] = []
        """Where pods came to, and why."""
        profiles = {"default-scheduler": plugins, **(others or {})}
        self.queue = SchedulingQueue(
            self.clock,
            sort_key=PrioritySort().sort_key,
            gatekeeper=self._gatekeeper,
            hints=HintTable(profiles, self.metrics),
            settings=QueueSettings(backoff or BackoffPolicy()),
            listeners=[lambda entry, why: self.moves.append((entry.home.value, why))],
        )

    def _gatekeeper(self, pod: Pod) -> tuple[str, str] | None:
        self.asked_at_the_gate.append(pod.name)
        plugin = self.gates.get(pod.name)
        return None if plugin is None else (plugin, f"held by {plugin}")

    def add(self, *pods: PodBuilder) -> None:
        for builder in pods:
            self.queue.add(builder.build())
            self.queue.check()

    def pop(self) -> Ticket:
        ticket = self.queue.pop()
        self.queue.check()
        assert ticket is not None, "nothing to pop"
        return ticket

    def pop_all(self) -> list[str]:
        """Names in the order in which they are popped; their tickets stay open."""
        names = []
        while (ticket := self.queue.pop()) is not None:
            names.append(ticket.pod.name)
        self.queue.check()
        return names

    def reject(self, ticket: Ticket, *rejectors: str, pending: Sequence[str] = (), pod: Pod | None = None) -> SubQueue:
        home = self.queue.give_back(ticket, pod or ticket.pod, frozenset(rejectors), frozenset(pending))
        self.queue.check()
        return home

    def add_rejected(self, builder: PodBuilder, *rejectors: str, pending: Sequence[str] = ()) -> str:
        """A pod that was tried and rejected; returns its uid."""
        self.add(builder)
        ticket = self.pop()
        self.reject(ticket, *rejectors, pending=pending)
        return ticket.uid

    def event(self, event: ClusterEvent = NODE_ADDED, old: Any = None, new: Any = None) -> int:
        moved = self.queue.on_event(event, old, new)
        self.queue.check()
        return moved

    def home(self, uid: str) -> SubQueue | None:
        """Where the pod is; None if the queue does not know it."""
        entry = self.queue.entry(uid)
        if entry is not None:
            return entry.home
        return SubQueue.IN_FLIGHT if uid in self.queue else None

    def after(self, seconds: float) -> int:
        """Let time pass and the backoff that is over end; returns how many pods that freed."""
        self.clock.now += seconds
        moved = self.queue.release_backoff()
        self.queue.check()
        return moved
