"""A part of a trace: a span of time, some namespaces, every nth pod.

What there is at the beginning of the span is put at second 0, so that the part is a trace of its own. A pod that was
seen running then is put on its node, with what was left of its life. Of a pod whose time of binding is unknown (an
imported or generated one) it is assumed that it ran as soon as it came; it is put pending, with what was left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from pilotage.clock import rfc3339_micro
from pilotage.lab.trace.content import OBSERVED_BOUND_AT
from pilotage.lab.trace.finishing import PodSeen, pod_seen
from pilotage.lab.trace.format import ObjectName, TraceHeader, TraceRecord
from pilotage.lab.trace.pod_facts import group_of
from pilotage.model.pod import decode_pod

_END_OF_TIME: Final = math.inf


class TracePart(msgspec.Struct, frozen=True):
    """Which part; by default all of it."""

    begin: float = 0.0
    end: float = _END_OF_TIME
    namespaces: frozenset[str] = frozenset()
    without_kinds: frozenset[str] = frozenset()
    every_pod: int = 1
    every_node: int = 1

    def header(self, header: TraceHeader) -> TraceHeader:
        return replace(header, start=rfc3339_micro(header.start_time + self.begin)) if self.begin else header


def cut(records: Iterator[TraceRecord], part: TracePart) -> Iterator[TraceRecord]:
    """The records of the part, in the time of the part."""
    return _window(_chosen(records, part), part.begin, part.end)


def _chosen(records: Iterator[TraceRecord], part: TracePart) -> Iterator[TraceRecord]:
    choice = _Choice(part)
    for record in records:
        name = record.name
        if name is None or choice.has(name, record):
            yield record


class _Choice:
    """Which objects are in the part. Of a group of pods all or none are."""

    def __init__(self, part: TracePart) -> None:
        self._part = part
        self._pods = 0
        self._nodes = 0
        self._left_out: set[ObjectName] = set()
        self._groups: dict[str, bool] = {}

    def has(self, name: ObjectName, record: TraceRecord) -> bool:
        part = self._part
        namespace = name.name if name.kind == "Namespace" else name.namespace
        if name.kind in part.without_kinds or (part.namespaces and namespace and namespace not in part.namespaces):
            return False
        if name.kind not in ("Pod", "Node") or (part.every_pod, part.every_node) == (1, 1):
            return True
        if name in self._left_out:
            if not record.puts:
                self._left_out.discard(name)
            return False
        if not record.puts:
            return True
        is_in = self._has_pod(record) if name.kind == "Pod" else self._has_node(name)
        if not is_in:
            self._left_out.add(name)
        return is_in

    def _has_pod(self, record: TraceRecord) -> bool:
        if self._part.every_pod == 1:
            return True
        group = group_of(decode_pod(bytes(record.put)))
        if group and group in self._groups:
            return self._groups[group]
        is_in = self._pods % self._part.every_pod == 0
        self._pods += 1
        if group:
            self._groups[group] = is_in
        return is_in

    def _has_node(self, name: ObjectName) -> bool:
        self._nodes += 1
        return (self._nodes - 1) % self._part.every_node == 0


def _window(records: Iterator[TraceRecord], begin: float, end: float) -> Iterator[TraceRecord]:
    state = _Beginning(begin) if begin > 0 else None
    for record in records:
        if record.at >= end:
            break
        if state is not None and record.at < begin:
            state.take_in(record)
            continue
        if state is not None:
            yield from state.records()
            state = None
        yield replace(record, at=round(record.at - begin, 6), put=_moved(record, begin))
    if state is not None and begin < end:
        yield from state.records()


class _Beginning:
    """What there is when the part begins."""

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._there: dict[ObjectName, TraceRecord] = {}
        self._groups: dict[str, bool] = {}
        """Groups of pods that are there, and whether a member has come."""

    def take_in(self, record: TraceRecord) -> None:
        name, there = record.name, self._there
        if name is None:
            return
        if name.kind == "PodGroup":
            self._groups.setdefault(f"{name.namespace}/{name.name}", False)
        if not record.puts:
            there.pop(name, None)
        elif name.kind != "Pod":
            there[name] = record
        elif record.runs is None and name in there:
            # A change: the pod's life and place stand in its first record.
            there[name] = _changed(there[name], record)
        else:
            self._note_group(record)
            is_over = record.runs is not None and _bound_at(record, pod_seen(record)) + record.runs <= self._begin
            if is_over:
                there.pop(name, None)
            else:
                there[name] = record

    def _note_group(self, record: TraceRecord) -> None:
        group = group_of(decode_pod(bytes(record.put))) if self._groups else ""
        if group in self._groups:
            self._groups[group] = True

    def records(self) -> Iterator[TraceRecord]:
        """All of it, but groups whose members are over."""
        pods = (record for name, record in self._there.items() if name.kind == "Pod" and self._groups)
        alive = {group_of(decode_pod(bytes(record.put))) for record in pods}
        for name, record in self._there.items():
            group = f"{name.namespace}/{name.name}"
            if name.kind == "Pod":
                yield self._pod(record)
            elif name.kind != "PodGroup" or group in alive or not self._groups[group]:
                yield replace(record, at=0.0)

    def _pod(self, record: TraceRecord) -> TraceRecord:
        seen, begin = pod_seen(record), self._begin
        bound_at = _bound_at(record, seen)
        ran = max(begin - bound_at, 0.0)
        left = None if record.runs is None else round(record.runs - ran, 6)
        put = record.put
        if seen.observed_bound_at is not None:
            put = _placed(record, seen.observed_node) if bound_at <= begin else _moved(record, begin)
        return TraceRecord(0.0, put=put, runs=left)


def _changed(first: TraceRecord, record: TraceRecord) -> TraceRecord:
    before, after = first.put_object(), record.put_object()
    annotations = {
        **(after["metadata"].get("annotations") or {}),
        **{
            key: value
            for key, value in (before["metadata"].get("annotations") or {}).items()
            if key.startswith("trace.pilotage.dev/")
        },
    }
    if annotations:
        after["metadata"]["annotations"] = annotations
    if node := (before.get("spec") or {}).get("nodeName"):
        after.setdefault("spec", {})["nodeName"] = node
    return replace(first, put=msgspec.Raw(msgspec.json.encode(after)))


def _bound_at(record: TraceRecord, seen: PodSeen) -> float:
    return record.at if seen.observed_bound_at is None else seen.observed_bound_at


def _placed(record: TraceRecord, node: str) -> msgspec.Raw:
    """The pod on the node where it was seen; from now on that is its state, and no observation."""
    pod = record.put_object()
    annotations = pod["metadata"]["annotations"]
    del annotations[OBSERVED_BOUND_AT]
    if node:
        pod.setdefault("spec", {})["nodeName"] = node
    return msgspec.Raw(msgspec.json.encode(pod))


def _moved(record: TraceRecord, begin: float) -> msgspec.Raw:
    """With the observed time in the time of the part."""
    if not begin or OBSERVED_BOUND_AT.encode() not in bytes(record.put):
        return record.put
    pod = record.put_object()
    annotations = pod["metadata"].get("annotations") or {}
    if OBSERVED_BOUND_AT in annotations:
        annotations[OBSERVED_BOUND_AT] = f"{float(annotations[OBSERVED_BOUND_AT]) - begin:.3f}"
    return msgspec.Raw(msgspec.json.encode(pod))
