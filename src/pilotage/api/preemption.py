"""Preemption for plugins: candidate nodes with their victims, and evictions.

Searching decides and changes nothing; evicting acts, and nothing waits for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from pilotage.api.results import Rejection
from pilotage.clock import parse_rfc3339
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup

_PRIORITY_OFFSET: Final = 2**31
"""Makes every priority positive, so that a sum of priorities grows with the number of pods."""


class Candidate(Struct, frozen=True, eq=False):
    """A node on which the pod would fit if the victims were gone; no victim could be spared."""

    node_name: str
    victims: tuple[Pod, ...]
    """At least one, the most important first; all of lower priority than the pod, unless a policy says otherwise."""
    violations: int
    """How many of the victims a disruption budget would protect."""
    cost: tuple[float, ...]
    """How much would be lost here: the candidate with the smallest cost is the one that kube-scheduler takes."""


class VictimPolicy:
    """Who may be made to go for a pod, who is spared first, and which node is the best. Override what differs.

    As it stands these are kube-scheduler's rules. Answers depend on the pods that are given alone.
    """

    def may_evict(self, pod: Pod, victim: Pod) -> bool:
        """Whether `victim`, on a node, may be evicted for the sake of `pod`."""
        return victim.priority < pod.priority

    def importance(self, victim: Pod) -> tuple[float, ...]:
        """Smaller is more important. The most important ones are spared as long as the pod fits beside them."""
        return -victim.priority, started_at(victim)

    def cost(self, pod: Pod, victims: Sequence[Pod], violations: int) -> tuple[float, ...]:
        """What it costs to take a node; the smallest is taken, the first of equals.

        `victims` has the most important first; `violations` is how many of them a disruption budget would protect.
        """
        highest = victims[0].priority
        earliest = min(started_at(victim) for victim in victims if victim.priority == highest)
        priorities = sum(victim.priority + _PRIORITY_OFFSET for victim in victims)
        return violations, highest, priorities, len(victims), -earliest


def started_at(pod: Pod) -> float:
    """When the kubelet started the pod, in seconds; one that it has not started yet counts as the latest of all."""
    start_time = pod.status.start_time
    return math.inf if start_time is None else _seconds(start_time)


@lru_cache(maxsize=65_536)
def _seconds(text: str) -> float:
    return parse_rfc3339(text)


class VictimSearch(Protocol):
    """What a search for victims has found."""

    @property
    def is_reviewed(self) -> bool:
        """Whether extenders have looked at the candidates, and left these."""

    @property
    def candidates(self) -> Sequence[Candidate]:
        """In the order in which they were found."""

    @property
    def best(self) -> Candidate | None:
        """The candidate with the smallest cost, the first of equals; None if there is none."""

    @property
    def errors(self) -> Sequence[Exception]:
        """What went wrong on single nodes."""

    def rejections(self) -> Mapping[str, tuple[str, Rejection]]:
        """Of the nodes that were tried in vain: which plugin ("" for none) still rejects, and why."""

    def rejectors(self) -> frozenset[str]:
        """The plugins in `rejections()`."""

    def message(self) -> str:
        """`0/5 nodes are available: ...`: why nothing helps; for a search without candidates."""


class Eviction(Struct, frozen=True):
    """A pod that has to go for the sake of another."""

    victim: Pod
    preemptor: Pod
    node_name: str
    plugin: str
    group: PodGroup | None = None
    """The group of the preemptor, if it is for the sake of all of it."""
    completes: bool = False
    """All other victims of the preemptor have gone: it is sent before those of preemptors that came later."""


class Evicted(Struct, frozen=True):
    """How an eviction ended."""

    is_in_memory: bool = False
    """The victim was not running yet: it was sent back to the queue, and the API server was not asked."""
    was_gone: bool = False
    """There was no such pod any more."""
    error: Exception | None = None


OnEvicted: TypeAlias = Callable[[Evicted], None]
