"""Traces of clusters that never were: nodes of some pools, pods that come, run and end by named distributions.

Everything follows from the specification and a seed: same seed, same bytes. The records are made one by one, so that a
trace of any length needs no memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import msgspec

from pilotage.lab.trace.distributions import Arrivals, DistributionError, Lifetime
from pilotage.lab.trace.format import VERSION, TraceHeader, TraceRecord
from pilotage.model.quantity import QuantityError, parse_quantity

START: Final = "2026-01-05T00:00:00Z"
"""A Monday."""
_POD_GROUP: Final = "scheduling.k8s.io/v1beta1"
_MOST_OF_ONE: Final = 1_000_000


class NodePool(msgspec.Struct, frozen=True):
    """Equal nodes."""

    name: str
    count: int
    capacity: Mapping[str, str]
    zones: int = 1
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class PodShape(msgspec.Struct, frozen=True):
    """Equal pods; `gang` of them come, and are placed, together."""

    requests: Mapping[str, str]
    weight: float = 1.0
    gang: int = 1
    priority: int | None = None
    namespace: str = "default"
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


class WorkloadModel(msgspec.Struct, frozen=True):
    """What comes when, and for how long."""

    pools: Sequence[NodePool]
    shapes: Sequence[PodShape]
    arrivals: Arrivals
    lifetimes: Sequence[Lifetime]
    """Of each shape."""


def generated_header(start: str = START) -> TraceHeader:
    return TraceHeader(pilotage_trace=VERSION, start=start, source="generated")


def generated(workload: WorkloadModel, rng: random.Random, until: float, most_pods: int) -> Iterator[TraceRecord]:
    """Nodes at second 0, then pods until the time or their number is reached."""
    yield from _nodes(workload.pools)
    for namespace in sorted({shape.namespace for shape in workload.shapes}):
        yield _put(0.0, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    weights = list(accumulate(shape.weight for shape in workload.shapes))
    indexes = range(len(workload.shapes))
    pods = gangs = 0
    for at in workload.arrivals(rng):
        if at >= until or pods >= most_pods:
            return
        index = rng.choices(indexes, cum_weights=weights)[0]
        shape, lifetime = workload.shapes[index], workload.lifetimes[index]
        seconds = round(at, 3)
        group = ""
        if shape.gang > 1:
            group = f"gang-{gangs:06}"
            gangs += 1
            yield _put(seconds, _pod_group(group, shape))
        runs = lifetime(rng)
        for _ in range(shape.gang):
            yield TraceRecord(
                seconds, put=_raw(_pod(pods, shape, group)), runs=None if runs is None else max(round(runs, 3), 0.001)
            )
            pods += 1


def parse_pool(text: str) -> NodePool:
    """`name=a,count=10,cpu=64,memory=256Gi,zones=3`; DistributionError says what is wrong."""
    fields = _fields("--pool", text)
    name = fields.pop("name", "pool")
    count = _whole("--pool", "count", fields.pop("count", "1"))
    zones = _whole("--pool", "zones", fields.pop("zones", "1"))
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110", **fields}
    _check_quantities("--pool", capacity)
    return NodePool(name, count, capacity, zones)


def parse_shape(text: str) -> tuple[PodShape, str]:
    """`cpu=500m,memory=1Gi,weight=3,gang=4,priority=10,lifetime=fixed:10m`, and the text of its own lifetime."""
    fields = _fields("--shape", text)
    weight = fields.pop("weight", "1")
    try:
        share = float(weight)
    except ValueError:
        share = -1.0
    if not 0 < share < 1e12:
        raise DistributionError(f'--shape: weight: "{weight}" is no number above 0')
    gang = _whole("--shape", "gang", fields.pop("gang", "1"))
    priority = fields.pop("priority", "")
    if priority and not priority.lstrip("-").isdigit():
        raise DistributionError(f'--shape: priority: "{priority}" is no whole number')
    namespace = fields.pop("namespace", "default")
    lifetime = fields.pop("lifetime", "").replace(";", ",")
    _check_quantities("--shape", fields)
    return PodShape(fields, share, gang, int(priority) if priority else None, namespace), lifetime


def _fields(option: str, text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise DistributionError(f'{option}: "{part}" is no key=value')
        if key.strip() in fields:
            raise DistributionError(f"{option}: {key.strip()} is there twice")
        fields[key.strip()] = value.strip()
    return fields


def _whole(option: str, key: str, text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= _MOST_OF_ONE:
        raise DistributionError(f'{option}: {key}: "{text}" is no whole number from 1 to {_MOST_OF_ONE:,}')
    return int(text)


def _check_quantities(option: str, amounts: Mapping[str, str]) -> None:
    for name, amount in amounts.items():
        try:
            parse_quantity(amount)
        except QuantityError as error:
            raise DistributionError(f"{option}: {name}: {error}") from error


def _nodes(pools: Sequence[NodePool]) -> Iterator[TraceRecord]:
    for pool in pools:
        for number in range(pool.count):
            name = f"{pool.name}-{number:05}"
            labels = {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": f"zone-{number % pool.zones}",
                "pool": pool.name,
                **pool.labels,
            }
            status = {"capacity": dict(pool.capacity), "allocatable": dict(pool.capacity)}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
            yield _put(0.0, node)


def _pod(number: int, shape: PodShape, group: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "main", "image": "main", "resources": {"requests": dict(shape.requests)}}],
    }
    if shape.priority is not None:
        spec["priority"] = shape.priority
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    metadata: dict[str, Any] = {"name": f"pod-{number:07}", "namespace": shape.namespace, "uid": f"pod-{number:07}"}
    if shape.annotations:
        metadata["annotations"] = dict(shape.annotations)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pod_group(name: str, shape: PodShape) -> dict[str, Any]:
    metadata = {"name": name, "namespace": shape.namespace, "uid": name}
    spec = {"schedulingPolicy": {"gang": {"minCount": shape.gang}}}
    return {"apiVersion": _POD_GROUP, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def _put(at: float, obj: dict[str, Any]) -> TraceRecord:
    return TraceRecord(at, put=_raw(obj))


def _raw(obj: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(obj))
