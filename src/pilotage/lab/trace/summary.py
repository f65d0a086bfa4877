"""What is in a trace: how long it is, what it consists of, who brings pods, how large they are, how long they run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from pilotage.lab.trace.distributions import Reservoir
from pilotage.lab.trace.finishing import LivingPods, pod_seen
from pilotage.lab.trace.format import Gap, ObjectName, TraceHeader, TraceRecord
from pilotage.lab.trace.pod_facts import group_of, owner_of, shape_of
from pilotage.model.errors import DecodeError
from pilotage.model.pod import decode_pod

_MOST_TOLD_APART: Final = 100_000
"""Owners, shapes or groups; whoever comes later is one of "others"."""
_SAMPLE: Final = 10_000
_MOST_GAPS: Final = 1_000
OTHERS: Final = "others"


class KindSummary(msgspec.Struct, rename="camel"):
    """Of the objects of one kind."""

    kind: str
    at_start: int = 0
    came: int = 0
    changed: int = 0
    went: int = 0


class PodSummary(msgspec.Struct, rename="camel"):
    """`lifetimes` are quantiles in seconds, of a sample if there are many."""

    came: int = 0
    running_at_start: int = 0
    with_lifetime: int = 0
    until_deleted: int = 0
    observed_bound: int = 0
    in_groups: int = 0
    lifetimes: dict[str, float] = {}
    waits: dict[str, float] = {}
    """How long the observed cluster took to bind them."""
    by_owner: list[tuple[str, int]] = []
    by_shape: list[tuple[str, int]] = []
    by_namespace: list[tuple[str, int]] = []
    arrivals_per_hour: list[int] = []
    """From the first hour on, without what was there at the start."""


class GapSummary(msgspec.Struct):
    at: float
    seconds: float
    reason: str


class TraceSummary(msgspec.Struct, rename="camel"):
    start: str
    source: str
    is_finished: bool
    """False for a recording whose lifetimes were worked out while it was read."""
    seconds: float
    records: int
    kinds: list[KindSummary]
    pods: PodSummary
    gaps: list[GapSummary]
    gap_seconds: float


class _Bounded:
    """Counts that do not grow without end."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, key: str) -> None:
        is_known = key in self._counts or len(self._counts) < _MOST_TOLD_APART
        self._counts[key if is_known else OTHERS] += 1

    def most(self, count: int) -> list[tuple[str, int]]:
        return self._counts.most_common(count)


def _quantiles(sample: Reservoir) -> dict[str, float]:
    values = sample.in_order()
    last = len(values) - 1
    return {f"p{percent}": values[round(last * percent / 100)] for percent in (50, 90, 99)} if values else {}


class Summing:
    """Takes in records one by one."""

    def __init__(self, rng: random.Random) -> None:
        self._kinds: dict[str, KindSummary] = {}
        self._there: set[ObjectName] = set()
        self._living = LivingPods()
        self._pods = PodSummary()
        self._lifetimes, self._waits = Reservoir(_SAMPLE, rng), Reservoir(_SAMPLE, rng)
        self._owners, self._shapes, self._namespaces = _Bounded(), _Bounded(), _Bounded()
        self._hours: Counter[int] = Counter()
        self._gaps: list[GapSummary] = []
        self._gap_seconds = 0.0
        self._records = 0
        self._end = 0.0

    def add(self, record: TraceRecord) -> None:
        self._records += 1
        self._end = max(self._end, record.at)
        if record.gap is not None:
            self._add_gap(record.at, record.gap)
            return
        name = record.name
        assert name is not None, "only a gap names no object"
        kind = self._kinds.setdefault(name.kind, KindSummary(name.kind))
        if not record.puts:
            kind.went += 1
            self._there.discard(name)
            self._living.delete(name)
            return
        if not self._has_come(name, record):
            kind.changed += 1
            return
        kind.came += record.at > 0
        kind.at_start += record.at == 0
        if name.kind == "Pod":
            self._add_pod(record)

    def _has_come(self, name: ObjectName, record: TraceRecord) -> bool:
        if name.kind == "Pod":
            return self._living.has_come(name, record)
        is_new = name not in self._there
        self._there.add(name)
        return is_new

    def _add_pod(self, record: TraceRecord) -> None:
        pods, seen = self._pods, pod_seen(record)
        pods.came += 1
        pods.running_at_start += record.at == 0 and bool(seen.spec.node_name)
        pods.observed_bound += seen.observed_bound_at is not None
        if seen.observed_bound_at is not None:
            self._waits.add(max(round(seen.observed_bound_at - record.at, 3), 0.0))
        if record.runs is None:
            pods.until_deleted += 1
        else:
            pods.with_lifetime += 1
            self._lifetimes.add(record.runs)
            self._end = max(self._end, record.at)
        if record.at > 0:
            self._hours[int(record.at // 3600)] += 1
        try:
            pod = decode_pod(bytes(record.put))
        except DecodeError:
            self._owners.add("not readable")
            return
        pods.in_groups += bool(group_of(pod))
        self._owners.add(owner_of(pod))
        self._shapes.add(str(shape_of(pod)))
        self._namespaces.add(pod.namespace)

    def _add_gap(self, at: float, gap: Gap) -> None:
        self._gap_seconds += gap.seconds
        if len(self._gaps) < _MOST_GAPS:
            self._gaps.append(GapSummary(at, gap.seconds, gap.reason))

    def summary(self, header: TraceHeader, is_finished: bool, top: int) -> TraceSummary:
        pods = self._pods
        pods.lifetimes, pods.waits = _quantiles(self._lifetimes), _quantiles(self._waits)
        pods.by_owner, pods.by_shape = self._owners.most(top), self._shapes.most(top)
        pods.by_namespace = self._namespaces.most(top)
        pods.arrivals_per_hour = [self._hours[hour] for hour in range(max(self._hours, default=-1) + 1)]
        kinds = sorted(self._kinds.values(), key=lambda kind: kind.kind)
        return TraceSummary(
            header.start,
            header.source,
            is_finished,
            self._end,
            self._records,
            kinds,
            pods,
            self._gaps,
            round(self._gap_seconds, 3),
        )


def summed(records: Iterable[TraceRecord], rng: random.Random) -> Summing:
    summing = Summing(rng)
    for record in records:
        summing.add(record)
    return summing


def sparkline(values: Sequence[int], width: int) -> str:
    """A bar per value, or per several of them if there are more than fit."""
    if not values:
        return ""
    per_bar = -(-len(values) // width)
    bars = [sum(values[at : at + per_bar]) for at in range(0, len(values), per_bar)]
    top = max(bars) or 1
    return "".join(" ▁▂▃▄▅▆▇█"[0 if not bar else 1 + round(bar / top * 7)] for bar in bars)
