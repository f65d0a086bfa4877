"""Why a workload gets no quota: obstacles as data, the sentence made of them on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from pilotage.jobs import conditions as c
from pilotage.jobs.quota import QuotaNode
from pilotage.jobs.room import NoRoom
from pilotage.model.quantity import MAX_INT64, format_quantity

_SEVERITY: Final = {c.WAITING_FOR_QUOTA: 0, c.WAITING_FOR_NODES: 1, c.EXCEEDS_MAX_QUOTA: 2, c.NO_MATCHING_FLAVOR: 3}


class Obstacle(NamedTuple):
    """What keeps one pod set off one flavor."""

    pod_set: str
    flavor: str
    """ "" if no flavor offers the resource."""
    resource: str
    code: str
    detail: str = ""
    need: int = 0
    have: int = 0
    most: int = 0
    nodes: NoRoom | None = None
    """What the nodes of the flavor say."""

    def now(self, node: QuotaNode) -> Obstacle:
        if self.code != c.WAITING_FOR_QUOTA:
            return self
        return self._replace(have=max(0, node.available((self.flavor, self.resource))))

    @property
    def sentence(self) -> str:
        if self.code == c.EXCEEDS_MAX_QUOTA:
            most = shown(self.resource, self.most)
            need = shown(self.resource, self.need)
            return f"insufficient quota for {self.resource} in flavor {self.flavor}, request {need} > maximum {most}"
        if self.code == c.WAITING_FOR_QUOTA:
            missing = shown(self.resource, max(0, self.need - max(0, self.have)))
            text = f"insufficient unused quota for {self.resource} in flavor {self.flavor}, {missing} more needed"
            return f"{text} ({self.detail})" if self.detail else text
        if self.code == c.WAITING_FOR_NODES:
            return f"no room on the nodes of flavor {self.flavor}: {self.detail}"
        return self.detail


@dataclass(frozen=True, slots=True)
class QuotaRejection:
    """The outcome of an attempt that did not end in a reservation."""

    reason: str
    obstacles: tuple[Obstacle, ...] = ()
    detail: str = ""

    def now(self, node: QuotaNode) -> QuotaRejection:
        """The same with what is free now."""
        return QuotaRejection(self.reason, tuple(one.now(node) for one in self.obstacles), self.detail)

    @property
    def message(self) -> str:
        if self.detail:
            return self.detail
        sets: dict[str, dict[str, None]] = {}
        for obstacle in self.obstacles:
            sets.setdefault(obstacle.pod_set, {})[obstacle.sentence] = None
        parts = (f"couldn't assign flavors to pod set {name}: {', '.join(said)}" for name, said in sets.items())
        return "; ".join(parts)


def mildest(obstacles: Sequence[Obstacle]) -> str:
    """The reason for one resource group, whose flavors are alternatives."""
    return min((obstacle.code for obstacle in obstacles), key=_SEVERITY.__getitem__, default=c.NO_MATCHING_FLAVOR)


def most_severe(reasons: Sequence[str]) -> str:
    """The reason for a workload, which needs all its groups and pod sets."""
    return max(reasons, key=_SEVERITY.__getitem__, default=c.WAITING_FOR_QUOTA)


@lru_cache(maxsize=16384)
def shown(resource: str, amount: int) -> str:
    """An amount as people write it, and the API server takes it: sums end at the largest int64."""
    capped = min(amount, MAX_INT64)
    return format_quantity(Fraction(capped, 1000) if resource == "cpu" else capped)
