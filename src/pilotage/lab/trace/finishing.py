"""From what was seen to what can be replayed: bindings and ends of pods become lifetimes.

A recording is written while things happen. It tells of each pod when it came, when it was bound and when it ended, in
records of their own:

    {"at": 10, "put": {pod}}                        it came
    {"at": 12, "put": {pod with spec.nodeName}}     the cluster's scheduler bound it
    {"at": 552, "delete": {"kind": "Pod", ...}}     it ended, or was deleted

A scheduler that replays this must place the pod itself, and the pod must live as long as it did. So the finished trace
has one record, with what was observed in annotations:

    {"at": 10, "put": {pod, annotations observed-node, observed-bound-at: "12"}, "runs": 540}

A workload (of workload queueing) gets `runs`, too: the time from the first binding of a pod of its job to the last end.

The lifetime is known only at the end, but stands at the beginning: the recording is read twice. Between the two, a few
bytes per pod are kept, and the names of those that live.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pilotage.lab.trace.content import OBSERVED_BOUND_AT, OBSERVED_NODE, fingerprint
from pilotage.lab.trace.format import Known, ObjectName, Records, TraceHeader, TraceRecord, Writer, any_kind, read

_UNKNOWN: Final = float("nan")
_NO_NODE: Final = -1


class _SeenOwner(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool = False


class _SeenMetadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    annotations: dict[str, str] = {}
    owner_references: list[_SeenOwner] = []


class _SeenSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


Job = tuple[str, str, str]
"""Kind, namespace and name of what controls pods, and perhaps has a workload."""


class PodSeen(msgspec.Struct, frozen=True):
    """What a put says of a pod's place."""

    metadata: _SeenMetadata
    spec: _SeenSpec = _SeenSpec()

    def job(self, namespace: str) -> Job | None:
        """Its controller, if it has one."""
        owners = (one for one in self.metadata.owner_references if one.controller)
        return next(((one.kind, namespace, one.name) for one in owners), None)

    @property
    def observed_node(self) -> str:
        """Where it ran when it was recorded, if it ran at all."""
        return self.metadata.annotations.get(OBSERVED_NODE, "")

    @property
    def observed_bound_at(self) -> float | None:
        try:
            return float(self.metadata.annotations[OBSERVED_BOUND_AT])
        except (KeyError, ValueError):
            return None


_seen = msgspec.json.Decoder(PodSeen)


def pod_seen(record: TraceRecord) -> PodSeen:
    """Of a record that puts a pod."""
    assert record.put is not None
    return _seen.decode(record.put)


class FoldedRecords(Iterator[TraceRecord]):
    """The records of a recording as those of a finished trace."""

    def __init__(self, recording: Records, lives: _Lives) -> None:
        self._recording = recording
        self._folded = _folded(recording, lives)

    def __next__(self) -> TraceRecord:
        return next(self._folded)

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        return self._recording.line

    @property
    def fraction_read(self) -> float:
        """How much of the file was read."""
        return self._recording.fraction_read


def open_trace(
    path: Path | str, *, known: Known = any_kind, allow_cut: bool = False
) -> tuple[TraceHeader, Records | FoldedRecords]:
    """As `read`; of a recording that was not finished, what it would be if it were.

    A recording that was cut off is as good as one that ends there.
    """
    header, records = read(path, known=known, allow_cut=allow_cut)
    if not header.recording:
        return header, records
    lives = _Lives()
    for record in read(path, known=known, allow_cut=True)[1]:
        lives.observe(record)
    _, again = read(path, known=known, allow_cut=True)
    return replace(header, recording=False), FoldedRecords(again, lives)


def finish(path: Path) -> None:
    """Turn a recording into a finished trace; until that is complete, the file stays as it is."""
    header, records = open_trace(path)
    part = path.with_name(f".{path.stem}.finishing{path.suffix}")
    try:
        with Writer(part, header) as out:
            for record in records:
                out.write(record)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class PodLife(msgspec.Struct):
    """A pod that is there; pods are counted in the order in which they came."""

    number: int
    uid: str
    bound_at: float | None = None
    content: bytes = b""


class LivingPods:
    """Which pods are there at a moment, and which of them have had their lifetime in the trace from the beginning."""

    def __init__(self) -> None:
        self.count = 0
        self._live: dict[ObjectName, PodLife] = {}
        self._finished: dict[ObjectName, str] = {}
        self._ends: list[tuple[float, int, ObjectName]] = []
        self._finished_count = 0

    def put(self, name: ObjectName, record: TraceRecord, seen: PodSeen) -> tuple[PodLife | None, bool]:
        """The pod, and whether it has just come; None if its lifetime stands in the trace."""
        while self._ends and self._ends[0][0] < record.at:
            self._finished.pop(heappop(self._ends)[2], None)
        if record.runs is not None:
            bound_at = seen.observed_bound_at
            self._finished[name] = seen.metadata.uid
            self._finished_count += 1
            end = (record.at if bound_at is None else bound_at) + record.runs
            heappush(self._ends, (end, self._finished_count, name))
            return None, False
        if name in self._finished and self._finished[name] == seen.metadata.uid:
            return None, False
        life = self._live.get(name)
        if life is not None and life.uid == seen.metadata.uid:
            return life, False
        self._live[name] = life = PodLife(self.count, seen.metadata.uid)
        self.count += 1
        return life, True

    def has_come(self, name: ObjectName, record: TraceRecord) -> bool:
        """Is a put the first of a pod, and no change?"""
        return self.put(name, record, pod_seen(record))[1] or record.runs is not None

    def delete(self, name: ObjectName) -> PodLife | None:
        return self._live.pop(name, None)


class _JobSpan(msgspec.Struct):
    """From when to when a job that has a workload had pods that ran."""

    begin: float = math.inf
    end: float = -math.inf
    running: int = 0

    @property
    def seconds(self) -> float | None:
        """None if it never ran, or still does."""
        return None if self.running or self.end < self.begin else round(self.end - self.begin, 3)


class _Lives:
    """First reading: what became of each pod."""

    def __init__(self) -> None:
        self._jobs: dict[Job, _JobSpan] = {}
        self._job_of: dict[int, _JobSpan] = {}
        self._living = LivingPods()
        self._runs = array("d")
        self._bound_at = array("d")
        self._node = array("l")
        self._nodes: list[str] = []
        self._node_numbers: dict[str, int] = {}

    def observe(self, record: TraceRecord) -> None:
        name = record.name
        if name is not None and name.kind == "Workload" and record.puts:
            if (job := pod_seen(record).job(name.namespace)) is not None:
                self._jobs.setdefault(job, _JobSpan())
            return
        if name is None or name.kind != "Pod":
            return
        if record.puts:
            self._put(name, record)
        elif (life := self._living.delete(name)) is not None and life.bound_at is not None:
            self._runs[life.number] = record.at - life.bound_at
            if (span := self._job_of.pop(life.number, None)) is not None:
                span.running -= 1
                span.end = max(span.end, record.at)

    def workload_runs(self, record: TraceRecord, namespace: str) -> float | None:
        """How long the job of a workload ran; None if that is not known."""
        job = pod_seen(record).job(namespace)
        span = self._jobs.get(job) if job is not None else None
        return None if span is None else span.seconds

    def _bound(self, life: PodLife, seen: PodSeen, namespace: str) -> None:
        """A pod runs from now on: it may be one of a job that has a workload."""
        job = seen.job(namespace) if self._jobs else None
        span = self._jobs.get(job) if job is not None else None
        if span is not None and life.bound_at is not None:
            self._job_of[life.number] = span
            span.running += 1
            span.begin = min(span.begin, life.bound_at)

    def _put(self, name: ObjectName, record: TraceRecord) -> None:
        seen = pod_seen(record)
        life, has_come = self._living.put(name, record, seen)
        if life is None:
            return
        if has_come:
            self._runs.append(_UNKNOWN)
            self._bound_at.append(_UNKNOWN)
            self._node.append(_NO_NODE)
            if seen.spec.node_name or seen.observed_node:
                life.bound_at = record.at if seen.observed_bound_at is None else seen.observed_bound_at
                self._bound(life, seen, name.namespace)
        elif life.bound_at is None and seen.spec.node_name:
            life.bound_at = self._bound_at[life.number] = record.at
            self._node[life.number] = self._node_number(seen.spec.node_name)
            self._bound(life, seen, name.namespace)

    def _node_number(self, node: str) -> int:
        number = self._node_numbers.setdefault(node, len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append(node)
        return number

    def runs(self, life: PodLife) -> float | None:
        """How long the pod ran; None if it never did, or still does."""
        runs = self._runs[life.number]
        return None if math.isnan(runs) else round(runs, 3)

    def binding(self, life: PodLife) -> tuple[str, float] | None:
        """Where it was bound while it was watched, and when."""
        node = self._node[life.number]
        return None if node == _NO_NODE else (self._nodes[node], self._bound_at[life.number])


def _folded(records: Iterator[TraceRecord], lives: _Lives) -> Iterator[TraceRecord]:
    """Second reading: each pod once, with its lifetime; its end only if it never ran."""
    living = LivingPods()
    for record in records:
        name = record.name
        if name is not None and name.kind == "Workload" and record.puts:
            yield replace(record, runs=lives.workload_runs(record, name.namespace))
        elif name is None or name.kind != "Pod":
            yield record
        elif not record.puts:
            gone = living.delete(name)
            if gone is None or lives.runs(gone) is None:
                yield record
        else:
            life, has_come = living.put(name, record, pod_seen(record))
            if life is None:
                yield record
                continue
            content = record.put_object()
            before, life.content = life.content, fingerprint(content)
            if has_come:
                yield _with_life(record, content, lives.runs(life), lives.binding(life))
            elif life.content != before:
                yield TraceRecord(record.at, put=_encoded(_unbound(content)))


def _with_life(
    record: TraceRecord, pod: dict[str, Any], runs: float | None, binding: tuple[str, float] | None
) -> TraceRecord:
    if binding is None:
        return replace(record, runs=runs)
    annotations = pod["metadata"].setdefault("annotations", {})
    annotations[OBSERVED_NODE] = binding[0]
    annotations[OBSERVED_BOUND_AT] = f"{binding[1]:.3f}"
    return replace(record, put=_encoded(pod), runs=runs)


def _unbound(pod: dict[str, Any]) -> dict[str, Any]:
    """A change says nothing of the pod's place: that is the scheduler's."""
    (pod.get("spec") or {}).pop("nodeName", None)
    return pod


def _encoded(obj: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(obj))
