"""Which pods went elsewhere in another run, and where the two runs part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np

from pilotage.lab.measures import reason_kind
from pilotage.lab.results import Result

SAME, LATER, SOONER, ELSEWHERE = "same node and time", "same node, later", "same node, sooner", "another node"
ONLY_FIRST, ONLY_SECOND = "placed in the first run only", "placed in the second run only"
NOT_THERE: Final = "came again in one run only"
"""A replacement of a pod that was evicted or lost."""
KINDS: Final = (SAME, LATER, SOONER, ELSEWHERE, ONLY_FIRST, ONLY_SECOND, NOT_THERE)
_INSTANT: Final = 1e-6


class PodInRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one run made of a pod."""

    bound: float | None = None
    node: str | None = None
    attempts: int = 0
    reason: str | None = None
    """What the last attempt in vain said."""
    end: str | None = None


class Moved(msgspec.Struct, frozen=True):
    """A pod that fared otherwise."""

    pod: str
    arrived: float
    kind: str
    first: PodInRun
    second: PodInRun

    @property
    def at(self) -> float:
        """When the two runs differ about it: the first binding that the other run has not; else its arrival."""
        bound = [one.bound for one in (self.first, self.second) if one.bound is not None]
        return min(bound, default=self.arrived)


class Divergence(msgspec.Struct, frozen=True):
    """Two runs, pod by pod."""

    counts: Mapping[str, int]
    """Pods by what differs."""
    reasons: Mapping[str, int]
    """Why pods that fared otherwise had waited in the second run."""
    first: Moved | None
    """Where the runs part: everything before it is the same."""
    pods: list[Moved]
    """The earliest ones."""
    left_out: int


def divergence(first: Result, second: Result, *, most: int = 20) -> Divergence:
    """Compare what became of each pod; `most` pods are described."""
    ours, theirs = _rows(first), _rows(second)
    counts = Counter(dict.fromkeys(KINDS, 0))
    reasons: Counter[str] = Counter()
    moved = []
    for pod in sorted(ours.keys() | theirs.keys()):
        one = _moved(pod, first, ours.get(pod), second, theirs.get(pod))
        counts[one.kind] += 1
        if one.kind == SAME:
            continue
        moved.append(one)
        if one.second.reason:
            reasons[reason_kind(one.second.reason)] += 1
    moved.sort(key=lambda one: (one.at, one.pod))
    frequent = dict(sorted(reasons.items(), key=lambda one: (-one[1], one[0]))[:most])
    return Divergence(dict(counts), frequent, moved[0] if moved else None, moved[:most], max(0, len(moved) - most))


def _rows(result: Result) -> dict[str, int]:
    """Where a pod's story is, by name; of a name that was given again, the last one."""
    return {name: row for row, name in enumerate(result.pods["pod"].tolist())}


def _moved(pod: str, first: Result, at: int | None, second: Result, other: int | None) -> Moved:
    ours, theirs = _placed(first, at), _placed(second, other)
    arrived = float(first.pods["arrived"][at] if at is not None else second.pods["arrived"][other])
    return Moved(pod, arrived, _kind(ours, theirs) if at is not None and other is not None else NOT_THERE, ours, theirs)


def _placed(result: Result, row: int | None) -> PodInRun:
    if row is None:
        return PodInRun()
    story: dict[str, Any] = {name: result.pods[name][row].item() for name in PodInRun.__struct_fields__}
    bound = None if np.isnan(story["bound"]) else story["bound"]
    return PodInRun(bound, story["node"] or None, story["attempts"], story["reason"] or None, story["end"] or None)


def _kind(first: PodInRun, second: PodInRun) -> str:
    if first.bound is None or second.bound is None:
        return SAME if first.bound is second.bound else ONLY_FIRST if second.bound is None else ONLY_SECOND
    if first.node != second.node:
        return ELSEWHERE
    if abs(first.bound - second.bound) <= _INSTANT:
        return SAME
    return LATER if second.bound > first.bound else SOONER
