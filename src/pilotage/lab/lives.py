"""The lives of pods in a simulation: when each came, what was tried, where it ran, and how it ended.

arrived -> tried, tried ... -> bound -> ended         after its lifetime, which counts from the binding
                                   +-> evicted        by the scheduler; with a controller, it comes again
                                   +-> lost           its node went; with a controller, it comes again
                                   +-> stopped        by workload queueing, with its whole job
   any of these -> deleted                            because the trace says so
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from pilotage.model import Pod
from pilotage.model.pod_resources import assigned_requests
from pilotage.model.quantity import QuantityError, quantity_nanos, resource_amount
from pilotage.simulate.memory_api import Key


class PodStory(msgspec.Struct, omit_defaults=True):
    """What became of one pod. Times are seconds since the start of the trace."""

    pod: str
    """ "namespace/name"."""
    arrived: float
    priority: int = 0
    attempts: int = 0
    bound: float | None = None
    node: str | None = None
    ended: float | None = None
    end: str | None = None
    """How: ended, evicted, lost, stopped, deleted; None if it was there to the last."""
    reason: str | None = None
    """Why it waited: what the last attempt in vain said."""
    replaces: str | None = None
    """The pod that was evicted or lost, for which this one came."""
    owner: str | None = None
    """Its controller, as "Kind/name"."""
    group: str | None = None
    """Its PodGroup."""
    requests: Mapping[str, int] = {}
    """Cpu in thousandths, everything else in units."""


class NodeStory(msgspec.Struct, omit_defaults=True):
    """A node that was there. Times are seconds since the start of the trace."""

    node: str
    since: float
    until: float | None = None
    """None if it was there to the last."""
    labels: Mapping[str, str] = {}
    """The last ones."""
    allocatable: Mapping[str, int] = {}
    """Cpu in thousandths, everything else in units."""


class LivePod(msgspec.Struct, eq=False):
    """A pod that is there."""

    story: PodStory
    key: Key
    origin: Key
    """What it was called before it came again; its key if it did not."""
    runs: float | None
    """How long it will run, once it is bound; None: until it is deleted."""
    generation: int = 0
    """How often it came again."""
    is_evicted: bool = False


class PodEnd(NamedTuple):
    """A pod is to go."""

    at: float
    order: int
    uid: str


class Lives:
    """The pods that are there, and when those that run will be gone. `tell` is called with each finished story."""

    def __init__(self, now: Callable[[], float], tell: Callable[[PodStory], None]) -> None:
        self._now = now
        self._tell = tell
        self._lives: dict[str, LivePod] = {}
        """By UID."""
        self._due: list[PodEnd] = []
        self._order = 0
        self._evicted = 0

    def __getitem__(self, uid: str) -> LivePod:
        return self._lives[uid]

    def __len__(self) -> int:
        return len(self._lives)

    # --- what happens ------------------------------------------------------------------------------------------

    def begin(self, pod: Pod, runs: float | None, replaced: LivePod | None = None) -> None:
        """A pod has come; it runs already if it has a node."""
        key = ("Pod", pod.namespace, pod.name)
        story = PodStory(pod.key, self._now(), pod.priority, requests=dict(assigned_requests(pod)))
        if pod.controller is not None:
            story.owner = f"{pod.controller.kind}/{pod.controller.name}"
        if pod.spec.scheduling_group is not None:
            story.group = pod.spec.scheduling_group.pod_group_name
        life = self._lives[pod.uid] = LivePod(story, key, key, runs)
        if replaced is not None:
            story.replaces = replaced.story.pod
            life.origin, life.generation = replaced.origin, replaced.generation + 1
        if pod.node_name:
            self.bound(pod.uid, pod.node_name)

    def tried(self, uid: str) -> None:
        life = self._lives.get(uid)
        if life is not None:
            life.story.attempts += 1

    def rejected(self, uid: str, why: str) -> None:
        life = self._lives.get(uid)
        if life is not None:
            life.story.reason = why

    def bound(self, uid: str, node_name: str) -> None:
        life = self._lives[uid]
        life.story.bound, life.story.node = self._now(), node_name
        if life.runs is not None:
            self._plan(uid, life.runs)

    def evicted(self, uid: str, seconds: float) -> None:
        """It is asked to go, and will be gone after so many seconds."""
        self._lives[uid].is_evicted = True
        self._evicted += 1
        self._plan(uid, seconds)

    def end(self, uid: str, how: str) -> LivePod:
        """It is gone."""
        life = self._lives.pop(uid)
        self._evicted -= life.is_evicted
        life.story.ended, life.story.end = self._now(), how
        self._tell(life.story)
        return life

    def close(self) -> None:
        """Tell of those who are there to the last."""
        for life in self._lives.values():
            self._tell(life.story)

    def saved(self) -> tuple[dict[str, LivePod], list[PodEnd], int]:
        """Everything that is known: the pods by UID, when they will be gone, and how often that was planned."""
        return self._lives, self._due, self._order

    def restore(self, lives: dict[str, LivePod], due: list[PodEnd], order: int) -> None:
        self._lives, self._due, self._order = lives, due, order

    def bound_at(self, uid: str) -> float:
        """When a pod was bound; infinite if it was not."""
        bound = self._lives[uid].story.bound
        return math.inf if bound is None else bound

    @property
    def are_evicted(self) -> bool:
        """Whether any pod is asked to go."""
        return self._evicted > 0

    # --- time --------------------------------------------------------------------------------------------------

    @property
    def next_due(self) -> float:
        """When the next pod is gone; infinite if none will go by itself."""
        while self._due and self._due[0].uid not in self._lives:
            heapq.heappop(self._due)
        return self._due[0].at if self._due else math.inf

    def due(self) -> Iterator[LivePod]:
        """The pods whose time has come."""
        while self.next_due <= self._now():
            yield self._lives[heapq.heappop(self._due).uid]

    def _plan(self, uid: str, seconds: float) -> None:
        self._order += 1
        heapq.heappush(self._due, PodEnd(self._now() + seconds, self._order, uid))


class NodeLives:
    """The nodes that are there. `tell` is called with each finished story."""

    def __init__(self, now: Callable[[], float], tell: Callable[[NodeStory], None]) -> None:
        self._now = now
        self._tell = tell
        self._lives: dict[str, NodeStory] = {}

    def put(self, node: Mapping[str, Any]) -> None:
        """A node, as JSON, comes or changes."""
        metadata = node["metadata"]
        story = self._lives.setdefault(metadata["name"], NodeStory(metadata["name"], self._now()))
        story.labels = metadata.get("labels") or {}
        story.allocatable = _amounts((node.get("status") or {}).get("allocatable") or {})

    def __len__(self) -> int:
        return len(self._lives)

    def saved(self) -> dict[str, NodeStory]:
        """The nodes that are there, by name."""
        return self._lives

    def restore(self, lives: dict[str, NodeStory]) -> None:
        self._lives = lives

    def end(self, name: str) -> None:
        """It is gone."""
        story = self._lives.pop(name, None)
        if story is not None:
            story.until = self._now()
            self._tell(story)

    def close(self) -> None:
        """Tell of those that are there to the last."""
        for story in self._lives.values():
            self._tell(story)


def _amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    for resource, quantity in quantities.items():
        with suppress(QuantityError):  # the scheduler has said what it makes of it
            found[resource] = resource_amount(resource, quantity_nanos(quantity))
    return found
