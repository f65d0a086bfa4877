"""A specification to generate by, fitted to a trace: its nodes by kind, its pods by shape, their times and lifetimes.

Kept are: how many pods came in each hour, how often each shape and size of group occurs, and of the lifetimes of each
shape a sample out of which quantiles are taken. What is lost: who depends on whom (affinity, spreading, selectors,
claims), and correlations in time within an hour.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from pilotage.lab.trace.distributions import Lifetime, Reservoir, hourly, quantiles
from pilotage.lab.trace.finishing import LivingPods
from pilotage.lab.trace.format import TraceRecord
from pilotage.lab.trace.generating import NodePool, PodShape, WorkloadModel
from pilotage.lab.trace.pod_facts import GPU_COUNT, GPU_MILLI, GPU_MODEL, amount_text, group_of
from pilotage.model.kinds import KINDS
from pilotage.model.pod import Pod, decode_pod
from pilotage.model.pod_resources import pod_requests
from pilotage.model.quantity import Quantity

_SAMPLE: Final = 2_000
"""Lifetimes that are kept of a shape; chosen by chance if there are more."""
_MOST_SHAPES: Final = 1_000
_GPU_ANNOTATIONS: Final = (GPU_COUNT, GPU_MILLI, GPU_MODEL)


class FitError(Exception):
    """A trace that says too little to make another one like it."""


class _Kind(msgspec.Struct, frozen=True):
    """By what pods are distinguished."""

    requests: tuple[tuple[str, str], ...]
    annotations: tuple[tuple[str, str], ...]
    priority: int | None
    namespace: str


class WorkloadFit:
    """Reads a trace record by record; `workload` is what was learned."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._nodes: dict[str, tuple[tuple[str, str], ...]] = {}
        self._counts: Counter[_Kind] = Counter()
        self._lifetimes: dict[_Kind, Reservoir] = {}
        self._hours: Counter[int] = Counter()
        self._group_sizes: Counter[str] = Counter()
        self._group_kinds: dict[str, _Kind] = {}
        self._living = LivingPods()
        self.pods = 0
        self.span = 0.0

    def observe(self, records: Iterator[TraceRecord]) -> None:
        for record in records:
            self.span = max(self.span, record.at)
            name = record.name
            if name is None:
                continue
            if name.kind == "Node" and record.puts:
                self._put_node(name.name, record)
            elif name.kind == "Pod":
                if not record.puts:
                    self._living.delete(name)
                elif self._living.has_come(name, record):
                    self._put_pod(record)

    def _put_node(self, name: str, record: TraceRecord) -> None:
        status = KINDS["nodes"].decode(bytes(record.put)).status
        amounts: Mapping[str, Quantity] = status.allocatable or status.capacity
        self._nodes[name] = tuple(sorted((key, str(value)) for key, value in amounts.items()))

    def _put_pod(self, record: TraceRecord) -> None:
        pod = decode_pod(bytes(record.put))
        kind = _kind_of(pod)
        self.pods += 1
        group = group_of(pod)
        if group:
            self._group_sizes[group] += 1
            self._group_kinds.setdefault(group, kind)
        # What was there at the beginning did not come in the first second.
        if record.at > 0 and (not group or self._group_sizes[group] == 1):
            self._hours[int(record.at // 3600)] += 1
        if not group:
            self._counts[kind] += 1
        if record.runs is not None:
            self._lifetimes.setdefault(kind, Reservoir(_SAMPLE, self._rng)).add(record.runs)

    def workload(self) -> WorkloadModel:
        """FitError if there is nothing to learn from."""
        if not self.pods:
            raise FitError("there are no pods in it")
        gangs = Counter((kind, self._group_sizes[group]) for group, kind in self._group_kinds.items())
        singles = Counter({(kind, 1): count for kind, count in self._counts.items()})
        common = (singles + gangs).most_common(_MOST_SHAPES)
        shapes = [_shape(kind, size, count) for (kind, size), count in common]
        lifetimes = [self._lifetime(kind) for (kind, _), _ in common]
        hours = max(int(self.span // 3600) + 1, 1)
        rates = [self._hours[hour] / min(3600.0, max(self.span - hour * 3600, 1.0)) for hour in range(hours)]
        if not any(rates):
            rates = [sum(count for _, count in common) / max(self.span, 3600.0)]
        return WorkloadModel(self._pools(), shapes, hourly(rates), lifetimes)

    def _pools(self) -> list[NodePool]:
        kinds = Counter(self._nodes.values())
        return [
            NodePool(f"pool{at}", count, dict(kind)) for at, (kind, count) in enumerate(sorted(kinds.items()), start=1)
        ]

    def _lifetime(self, kind: _Kind) -> Lifetime:
        seen = self._lifetimes.get(kind)
        return quantiles(seen.in_order()) if seen is not None else lambda rng: None


def _kind_of(pod: Pod) -> _Kind:
    requests = tuple((name, amount_text(name, amount)) for name, amount in sorted(pod_requests(pod.spec).items()))
    annotations = tuple((key, pod.annotations[key]) for key in _GPU_ANNOTATIONS if key in pod.annotations)
    return _Kind(requests, annotations, pod.spec.priority, pod.namespace)


def _shape(kind: _Kind, size: int, count: int) -> PodShape:
    return PodShape(dict(kind.requests), float(count), size, kind.priority, kind.namespace, dict(kind.annotations))
