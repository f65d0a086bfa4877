"""What preemption talks about: nodes that would do if some pods went, and pods that are made to go.

Searching decides and changes nothing; evicting acts, without anybody waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pilotage.api.results import Refusal
from pilotage.model import Pod


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A node on which the pod would fit if the victims were gone; no victim could be spared."""

    node_name: str
    victims: tuple[Pod, ...]
    """At least one, the most important first; all of lower priority than the pod."""
    violations: int
    """How many of the victims a disruption budget would protect."""
    cost: tuple[float, ...]
    """How much would be lost here: the candidate with the smallest cost is the one that kube-scheduler takes."""


class VictimSearch(Protocol):
    """What a search for victims has found."""

    @property
    def candidates(self) -> Sequence[Candidate]:
        """In the order in which they were found."""

    @property
    def best(self) -> Candidate | None:
        """The candidate with the smallest cost, the first of equals; None if there is none."""

    @property
    def errors(self) -> Sequence[Exception]:
        """What went wrong on single nodes."""

    def refusals(self) -> Mapping[str, tuple[str, Refusal]]:
        """Of the nodes that were tried in vain: which plugin ("" for none) still refuses, and why."""

    def message(self) -> str:
        """`0/5 nodes are available: ...`: why nothing helps; for a search without candidates."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that has to go for the sake of another."""

    victim: Pod
    preemptor: Pod
    node_name: str
    plugin: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """How an eviction ended."""

    is_in_memory: bool = False
    """The victim was not running yet: it was sent back to the queue, and the API server was not asked."""
    was_gone: bool = False
    """There was no such pod any more."""
    error: Exception | None = None


OnEvicted: TypeAlias = Callable[[Evicted], None]
