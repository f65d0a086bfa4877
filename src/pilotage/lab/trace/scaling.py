"""A trace with more or fewer pods, that come faster or slower, and live longer or shorter."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pilotage.lab.trace.content import OBSERVED_BOUND_AT, OBSERVED_NODE
from pilotage.lab.trace.format import ObjectName, TraceRecord
from pilotage.lab.trace.pod_facts import group_of
from pilotage.lab.trace.renaming import rename, renamed_object
from pilotage.model.pod import Pod, decode_pod

_COPIED: Final = frozenset({"Pod", "PodGroup", "Job", "Workload"})
_RANGE: Final = 2**64


class Factors(msgspec.Struct, frozen=True):
    """By default nothing changes."""

    rate: float = 1.0
    """How many times as fast pods come: all times are divided by it, lifetimes are not."""
    lifetimes: float = 1.0
    pods: float = 1.0
    """How many pods instead of one, on average."""
    spread: float = 0.0
    """Copies come up to so many seconds later."""
    seed: int = 0


class Scaling:
    """Scales one trace. What is copied, and when it comes, follows from names and seed: nothing is remembered."""

    def __init__(self, factors: Factors) -> None:
        self._factors = factors
        self._key = factors.seed.to_bytes(16, "little", signed=True)
        self._units: dict[ObjectName, str] = {}
        """Of pods that live until they are deleted, and are in a group: what their fate hangs on."""
        self._uncopied: set[ObjectName] = set()
        self.not_copied = 0
        """Pods that use claims of their own: a copy would fight for the same volume or device."""

    def records(self, records: Iterator[TraceRecord]) -> Iterator[TraceRecord]:
        waiting: list[tuple[float, int, TraceRecord]] = []
        count = 0
        for record in records:
            for made in self._made_of(record):
                count += 1
                heapq.heappush(waiting, (made.at, count, made))
            while waiting and waiting[0][0] <= round(record.at / self._factors.rate, 6):
                yield heapq.heappop(waiting)[2]
        while waiting:
            yield heapq.heappop(waiting)[2]

    def _made_of(self, record: TraceRecord) -> Iterator[TraceRecord]:
        name = record.name
        moved = self._moved(record)
        if name is None or name.kind not in _COPIED or self._factors.pods == 1:
            yield moved
            return
        unit = self._unit(name, record)
        copies = self._copies(unit)
        if copies > 1 and name in self._uncopied:
            copies = 1
        for number in range(copies):
            names = _CopyNames(number)
            at = round(moved.at + self._chance(unit, number) * self._factors.spread, 6)
            if not number:
                yield moved
            elif record.delete is not None:
                yield replace(moved, at=at, delete=renamed_object(record.delete, names))
            else:
                yield replace(moved, at=at, put=_encoded(_unobserved(rename(record.put_object(), names))))
        if not record.puts:
            self._units.pop(name, None)
            self._uncopied.discard(name)

    def _moved(self, record: TraceRecord) -> TraceRecord:
        factors = self._factors
        at = round(record.at / factors.rate, 6)
        runs = None if record.runs is None else round(record.runs * factors.lifetimes, 6)
        put = record.put
        if factors.rate != 1 and OBSERVED_BOUND_AT.encode() in bytes(put):
            obj = record.put_object()
            annotations = obj["metadata"].get("annotations") or {}
            waited = float(annotations.get(OBSERVED_BOUND_AT, record.at)) - record.at
            annotations[OBSERVED_BOUND_AT] = f"{at + waited:.3f}"
            put = _encoded(obj)
        return replace(record, at=at, runs=runs, put=put)

    def _unit(self, name: ObjectName, record: TraceRecord) -> str:
        """What is copied as a whole: a group, a Job with its pods, or a single pod."""
        own = f"{name.namespace}/{name.name}"
        if not record.puts or name.kind != "Pod":
            return self._units.get(name, own)
        pod = decode_pod(bytes(record.put))
        owner = pod.controller
        unit = group_of(pod) or (f"{pod.namespace}/{owner.name}" if owner is not None and owner.kind == "Job" else own)
        if unit != own and record.runs is None:
            self._units[name] = unit
        if _has_claims(pod) and name not in self._uncopied and self._copies(unit) > 1:
            self.not_copied += 1
            self._uncopied.add(name)
        return unit

    def _copies(self, unit: str) -> int:
        whole = int(self._factors.pods)
        return whole + (self._chance(unit, 0) < self._factors.pods - whole)

    def _chance(self, unit: str, number: int) -> float:
        """Between 0 and 1, always the same for the same unit and seed."""
        digest = blake2b(f"{number}\0{unit}".encode(), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "little") / _RANGE


class _CopyNames:
    """Names of the nth copy."""

    def __init__(self, number: int) -> None:
        self._suffix = f"-x{number}"

    def name(self, kind: str, name: str) -> str:
        return f"{name}{self._suffix}" if kind in _COPIED else name

    def key(self, key: str) -> str:
        return key

    def value(self, key: str, value: str) -> str:
        return value

    def other(self, what: str, text: str) -> str:
        return f"{text}{self._suffix}" if what == "uid" else text


def _has_claims(pod: Pod) -> bool:
    spec = pod.spec
    named = any(claim.resource_claim_name for claim in spec.resource_claims) or pod.status.resource_claim_statuses
    return bool(named) or any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes)


def _unobserved(obj: dict[str, Any]) -> dict[str, Any]:
    """A copy was never observed, and is on no node yet."""
    annotations = obj["metadata"].get("annotations") or {}
    for key in (OBSERVED_NODE, OBSERVED_BOUND_AT):
        annotations.pop(key, None)
    if obj["kind"] == "Pod":
        (obj.get("spec") or {}).pop("nodeName", None)
    return obj


def _encoded(obj: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(obj))
