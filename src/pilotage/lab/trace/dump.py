"""A trace out of what `kubectl get -o json` or `-o yaml` wrote: the cluster as its objects remember it.

Objects say when they were made, pods also when they were bound (as do `Scheduled` events) and, if they are over, when
their containers ended. So the trace begins with the oldest pod and ends with the newest time that any object mentions.
What was deleted before the dump is not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage.clock import parse_rfc3339, rfc3339_micro
from pilotage.kube_yaml import YamlError, documents
from pilotage.lab.trace.content import ENDED, OBSERVED_BOUND_AT, OBSERVED_NODE, RECORDED, Redaction, Sighting, sighting
from pilotage.lab.trace.external_sort import in_order
from pilotage.lab.trace.format import VERSION, TraceHeader, TraceRecord
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KindInfo, kind_of

_MIRROR: Final = "kubernetes.io/config.mirror"


class DumpError(Exception):
    """A file that is no dump: which, what is wrong, and the way out."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str | None = None
    creation_timestamp: str | None = None


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: _Meta = _Meta()
    items: list[msgspec.Raw] | None = None


class _Reference(msgspec.Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    reason: str = ""
    event_time: str | None = None
    first_timestamp: str | None = None
    deprecated_first_timestamp: str | None = None
    involved_object: _Reference = _Reference()
    regarding: _Reference = _Reference()

    @property
    def pod(self) -> str:
        found = self.regarding if self.regarding.name else self.involved_object
        return f"{found.namespace}/{found.name}" if found.kind == "Pod" else ""

    @property
    def time(self) -> float | None:
        return time_of(self.event_time or self.first_timestamp or self.deprecated_first_timestamp)


class _Terminated(msgspec.Struct, frozen=True, rename="camel"):
    finished_at: str | None = None


class _State(msgspec.Struct, frozen=True):
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, frozen=True):
    state: _State = _State()


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    start_time: str | None = None
    conditions: list[_Condition] = []
    container_statuses: list[_ContainerStatus] = []


class PodTimes(msgspec.Struct, frozen=True):
    """What a pod remembers of its life."""

    status: _PodStatus = _PodStatus()

    @property
    def bound_at(self) -> float | None:
        scheduled = (one.last_transition_time for one in self.status.conditions if _is_scheduled(one))
        return time_of(next(scheduled, None) or self.status.start_time)

    @property
    def ended_at(self) -> float | None:
        """None if it is not over, or does not say since when."""
        ends = [one.state.terminated.finished_at for one in self.status.container_statuses if one.state.terminated]
        times = [time for time in map(time_of, ends) if time is not None]
        return max(times) if times and self.status.phase in ENDED else None


class _Entry(msgspec.Struct):
    sighting: Sighting
    created: float | None
    bound: float | None = None
    ended: float | None = None


class Dump:
    """What the files say; `records` gives the trace."""

    def __init__(self, entries: Sequence[_Entry], events: dict[str, float], left_out: Counter[str]) -> None:
        self._entries = entries
        self._events = events
        born = [entry.created for entry in entries if entry.created is not None and entry.sighting.kind == "Pod"]
        any_born = [entry.created for entry in entries if entry.created is not None]
        self._start = min(born or any_born or [0.0])
        self.header = TraceHeader(pilotage_trace=VERSION, start=rfc3339_micro(self._start), source="dump")
        pods = {entry.sighting.key for entry in entries if entry.sighting.kind == "Pod"}
        kinds = Counter(entry.sighting.kind for entry in entries)
        self.summary = f"{len(entries):,} objects ({_counts(kinds)})"
        if left_out:
            self.summary += f"; left out, scheduling does not read it or it is over: {_counts(left_out)}"
        if gone := len(events.keys() - pods):
            self.summary += f"; {gone:,} Scheduled events are of pods that the files do not have"

    def records(self) -> Iterator[TraceRecord]:
        return in_order(self._record(entry) for entry in self._entries)

    def _record(self, entry: _Entry) -> TraceRecord:
        content = entry.sighting.content
        at = self._seconds(entry.created)
        if entry.sighting.kind != "Pod":
            return TraceRecord(at, put=_encoded(content))
        node = content.get("spec", {}).get("nodeName", "")
        annotations = content["metadata"].get("annotations", {})
        if not node or _MIRROR in annotations:
            return TraceRecord(at, put=_encoded(content))
        bound = self._events.get(entry.sighting.key, entry.bound)
        bound_at = max(at, at if bound is None else self._seconds(bound))
        observed = {OBSERVED_NODE: node, OBSERVED_BOUND_AT: f"{bound_at:.3f}"}
        pod = {**content, "metadata": {**content["metadata"], "annotations": {**annotations, **observed}}}
        pod["spec"] = {key: value for key, value in content["spec"].items() if key != "nodeName"}
        pod.pop("status", None)
        runs = None if entry.ended is None else round(max(self._seconds(entry.ended) - bound_at, 0.0), 3)
        return TraceRecord(at, put=_encoded(pod), runs=runs)

    def _seconds(self, time: float | None) -> float:
        return 0.0 if time is None else round(max(time - self._start, 0.0), 3)


def trace_of_dump(files: Iterable[Path], redaction: Redaction) -> Dump:
    """Read the files, each as a whole. DumpError if one cannot be used."""
    entries: list[_Entry] = []
    events: dict[str, float] = {}
    left_out: Counter[str] = Counter()
    for file in files:
        for data in _objects(file):
            item = _decoded(file, data, _Item)
            if item.kind == "Event":
                event = _decoded(file, data, _Event)
                if event.reason == "Scheduled" and event.pod and (time := event.time) is not None:
                    events[event.pod] = time
                continue
            info = kind_of(item.kind)
            entry = None if info is None or info.plural not in RECORDED else _entry(file, info, item, data, redaction)
            if entry is None:
                left_out[item.kind or "unnamed"] += 1
            else:
                entries.append(entry)
    if not entries:
        raise DumpError(
            "there is nothing in these files that a trace is made of; try kubectl get nodes,pods -A -o json"
        )
    return Dump(entries, events, left_out)


def _entry(file: Path, info: KindInfo, item: _Item, data: bytes, redaction: Redaction) -> _Entry | None:
    """None for a pod that is over and does not say since when."""
    try:
        seen = sighting(info, data, redaction)
    except DecodeError as error:
        raise DumpError(f"{file}: {error}") from error
    created = time_of(item.metadata.creation_timestamp)
    if info.plural != "pods":
        return _Entry(seen, created)
    times = _decoded(file, data, PodTimes)
    if times.status.phase in ENDED and times.ended_at is None:
        return None
    return _Entry(seen, created, times.bound_at, times.ended_at)


def _objects(file: Path) -> Iterator[bytes]:
    """Objects of a file, those in lists one by one."""
    try:
        text = file.read_bytes()
    except OSError as error:
        raise DumpError(f"{file}: cannot be read: {error.strerror or error}") from error
    if not text.strip():
        raise DumpError(f"{file}: is empty")
    if text.lstrip()[:1] == b"{":
        yield from _flat(file, [text])
        return
    try:
        yield from _flat(file, (msgspec.json.encode(document.value) for document in documents(text)))
    except YamlError as error:
        raise DumpError(f"{file}: {error}; is it what `kubectl get -o json` or `-o yaml` wrote?") from error


def _flat(file: Path, found: Iterable[bytes]) -> Iterator[bytes]:
    for data in found:
        item = _decoded(file, data, _Item)
        if item.items is None:
            yield data
        for inner in item.items or ():
            yield bytes(inner)


def _decoded(file: Path, data: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"is no list of objects: {error}"
        raise DumpError(f"{file}: {problem}; is it what `kubectl get -o json` or `-o yaml` wrote?") from error


def _is_scheduled(condition: _Condition) -> bool:
    return condition.type == "PodScheduled" and condition.status == "True"


def time_of(text: str | None) -> float | None:
    try:
        return parse_rfc3339(text) if text else None
    except ValueError:
        return None


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counter.most_common())


def _encoded(obj: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(obj))
