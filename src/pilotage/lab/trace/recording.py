"""A trace written while it happens: from what reflectors see to records, and what was missed.

    {"at": 10, "put": {pod}}                        an object came, or changed in a way that scheduling may mind
    {"at": 12, "put": {pod with spec.nodeName}}     a pod was bound
    {"at": 552, "delete": {...}}                    an object went, or a pod ended

What follows from a decision of the scheduler that was watched is left out, because whoever replays the trace decides
anew: the allocation of a claim, the binding of a volume claim whose class waits for its pod, the volume made for it.
What was decided before the recording began is the state that it begins with, and is kept. When a recording is over,
`finishing.finish` makes lifetimes out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pilotage.lab.trace.content import ENDED, QUEUE_LABEL, Sighting, fingerprint
from pilotage.lab.trace.finishing import pod_seen
from pilotage.lab.trace.format import Gap, ObjectName, TraceError, TraceHeader, TraceRecord, Writer, any_kind, read
from pilotage.model.codec import WatchEvent
from pilotage.model.kinds import kind_of

SHORTEST_GAP: Final = 2.0
"""Seconds without contact that are worth a line if nothing had to be listed anew."""
_WAITS_FOR_POD: Final = "WaitForFirstConsumer"
_PROVISIONED: Final = "pv.kubernetes.io/provisioned-by"
_EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
_MIRROR: Final = "kubernetes.io/config.mirror"
_KUBE_SYSTEM: Final = ObjectName("v1", "Namespace", "kube-system")
"""Its UID is what distinguishes clusters."""
_STATUS_IS_DECIDED: Final = frozenset({"ResourceClaim", "Workload", "PodGroup"})


class _Known(msgspec.Struct):
    """What the trace says of an object so far."""

    uid: str
    content: bytes
    place: str = ""
    """The node of a pod, the volume of a claim."""


class TraceState(msgspec.Struct):
    """Where a trace ends: what there is, by kind."""

    objects: dict[str, dict[ObjectName, _Known]] = {}
    waiting_classes: set[str] = set()
    """Storage classes whose volumes are bound when a pod is placed."""
    at: float = 0.0

    def observe(self, record: TraceRecord) -> None:
        self.at = record.at
        name = record.name
        if name is None:
            return
        there = self.objects.setdefault(name.kind, {})
        if not record.puts:
            there.pop(name, None)
            return
        content = record.put_object()
        self.note_class(content)
        uid, digest = content["metadata"].get("uid", ""), fingerprint(content)
        if name.kind == "Pod":
            self._observe_pod(record, name, uid, digest)
        else:
            there[name] = _Known(uid, digest, _volume(content))

    def note_class(self, content: Mapping[str, Any]) -> None:
        if content["kind"] == "StorageClass" and content.get("volumeBindingMode") == _WAITS_FOR_POD:
            self.waiting_classes.add(content["metadata"]["name"])

    def _observe_pod(self, record: TraceRecord, name: ObjectName, uid: str, digest: bytes) -> None:
        pods, seen = self.objects["Pod"], pod_seen(record)
        before = pods.get(name)
        node = seen.spec.node_name or seen.observed_node
        if record.runs is not None:
            pods.pop(name, None)
        elif before is not None and before.uid == uid:
            before.content, before.place = digest, before.place or node
        else:
            pods[name] = _Known(uid, digest, node)


class Recording:
    """The only writer of a trace that is being recorded. It never raises: see `failure`."""

    def __init__(self, out: Writer, now: Callable[[], float], state: TraceState) -> None:
        """`now` is seconds since the start of the trace; `state` what it says already."""
        self._out = out
        self._now = now
        self._known = state.objects
        self._state = state
        self._listed = set(state.objects)
        self.records = 0
        self.pods = 0
        """How many have come since this recording began or went on."""
        self.failure: Exception | None = None
        """Why nothing more can be written."""

    @property
    def running_pods(self) -> int:
        return sum(bool(pod.place) for pod in self._known.get("Pod", {}).values())

    # --- what reflectors tell --------------------------------------------------------------------------------------

    def replace(self, kind: str, objects: list[Sighting]) -> None:
        """These are all objects of a kind."""
        self._write(self._listing(kind, objects))

    def apply(self, kind: str, events: list[WatchEvent]) -> None:
        self._write(self._changes(events))

    def gap(self, seconds: float, reason: str) -> None:
        if self.failure is None:
            self._write(iter([TraceRecord(self._now(), gap=Gap(round(seconds, 3), reason))]))

    def flush(self) -> None:
        self._guarded(self._out.flush)

    def _write(self, records: Iterator[TraceRecord]) -> None:
        def write_all() -> None:
            for record in records:
                self._out.write(record)
                self.records += 1

        self._guarded(write_all)

    def _guarded(self, work: Callable[[], None]) -> None:
        # A reflector survives what its sink raises, and would list again and again.
        if self.failure is not None:
            return
        try:
            work()
        except Exception as error:
            self.failure = error

    # --- what is worth a record ------------------------------------------------------------------------------------

    def _listing(self, kind: str, objects: list[Sighting]) -> Iterator[TraceRecord]:
        known = self._known.get(kind, {})
        there = {_name(one) for one in objects}
        for name in [name for name in known if name not in there]:
            yield from self._gone(name)
        is_first = kind not in self._listed
        self._listed.add(kind)
        for one in objects:
            yield from self._seen(one, is_first=is_first, is_listed=True)

    def _changes(self, events: list[WatchEvent]) -> Iterator[TraceRecord]:
        for event in events:
            if event.type == "DELETED":
                yield from self._gone(_name(event.object))
            else:
                yield from self._seen(event.object)

    def _seen(self, one: Sighting, *, is_first: bool = False, is_listed: bool = False) -> Iterator[TraceRecord]:
        name = _name(one)
        known = self._known.setdefault(one.kind, {}).get(name)
        if known is not None and known.uid != one.uid:
            yield from self._gone(name)
            known = None
        if one.kind == "Pod":
            yield from self._pod_seen(one, name, known, is_listed and not is_first)
            return
        if one.kind == "Job" and QUEUE_LABEL not in one.content["metadata"].get("labels", {}):
            return
        self._state.note_class(one.content)
        is_new = known is None and not is_first
        if is_new and self._follows_from_a_decision(one):
            return
        content = self._without_decisions(one.content, is_new, known)
        digest = fingerprint(content)
        if known is None or known.content != digest:
            yield self._put(content)
            place = _volume(content) if known is None else known.place
            self._known[one.kind][name] = _Known(one.uid, digest, place)

    def _pod_seen(self, one: Sighting, name: ObjectName, known: _Known | None, is_late: bool) -> Iterator[TraceRecord]:
        """`is_late`: it came during a gap, and may have been bound since."""
        if (one.content.get("status") or {}).get("phase") in ENDED:
            yield from self._gone(name)
            return
        node = (one.content.get("spec") or {}).get("nodeName", "")
        digest = fingerprint(one.content)
        if known is None:
            self.pods += 1
            if node and is_late and _MIRROR not in one.content["metadata"].get("annotations", {}):
                yield self._put(_without_node(one.content))
            yield self._put(one.content)
        elif known.content != digest or (node and not known.place):
            yield self._put(one.content)
        self._known[one.kind][name] = _Known(one.uid, digest, node)

    def _gone(self, name: ObjectName) -> Iterator[TraceRecord]:
        if self._known.get(name.kind, {}).pop(name, None) is not None:
            yield TraceRecord(self._now(), delete=name)

    def _put(self, content: dict[str, Any]) -> TraceRecord:
        return TraceRecord(self._now(), put=msgspec.Raw(msgspec.json.encode(content)))

    def _without_decisions(self, content: dict[str, Any], is_new: bool, known: _Known | None) -> dict[str, Any]:
        """The object as it was before a pod that needs it was placed."""
        kind = content["kind"]
        if kind in _STATUS_IS_DECIDED and is_new:
            return {key: value for key, value in content.items() if key != "status"}
        spec = content.get("spec") or {}
        waits = kind == "PersistentVolumeClaim" and spec.get("storageClassName") in self._state.waiting_classes
        if not waits or not (is_new or (known is not None and not known.place)):
            return content
        metadata = {key: value for key, value in content["metadata"].items() if key != "annotations"}
        kept = {key: value for key, value in spec.items() if key != "volumeName"}
        return {"apiVersion": content["apiVersion"], "kind": kind, "metadata": metadata, "spec": kept}

    def _follows_from_a_decision(self, one: Sighting) -> bool:
        """A volume or a claim that was made because a pod was placed."""
        annotations = one.content["metadata"].get("annotations") or {}
        if one.kind == "PersistentVolume":
            storage_class = (one.content.get("spec") or {}).get("storageClassName")
            return _PROVISIONED in annotations and storage_class in self._state.waiting_classes
        return one.kind == "ResourceClaim" and _EXTENDED_CLAIM in annotations


def continued(
    path: Path, now: float, header: TraceHeader, cluster: str | None = None
) -> tuple[Writer, TraceState, float]:
    """Go on with a trace that is there: a writer at its end, the state that it has reached, and what was missed.

    `now` is seconds since the epoch; `cluster` is the UID of the namespace kube-system, if known. The trace is copied,
    without a line that is cut off; the copy takes its place when it is complete. What was not watched in between is a
    gap. TraceError if it is no recording, or one of another cluster.
    """
    before, records = read(path, known=any_kind, allow_cut=True)
    if before.source != header.source:
        raise TraceError(path, 1, f"is no recording that could go on, but a trace of {before.source or 'something'}")
    header = replace(before, recording=True)
    part = path.with_name(f".{path.stem}.resuming{path.suffix}")
    state = TraceState()
    out = Writer(part, header)
    try:
        for record in records:
            state.observe(record)
            out.write(record)
        known = state.objects.get("Namespace", {}).get(_KUBE_SYSTEM)
        if known is not None and cluster is not None and known.uid != cluster:
            raise TraceError(path, 0, "is a recording of another cluster; choose another name")
        at = round(max(now - header.start_time, state.at), 3)
        missed = round(at - state.at, 3)
        out.gap(at, missed, "nothing was recorded")
        state.at = at
        out.flush()
        part.replace(path)
    except BaseException:
        out.close()
        part.unlink(missing_ok=True)
        raise
    return out, state, missed


def _volume(content: Mapping[str, Any]) -> str:
    return (content.get("spec") or {}).get("volumeName", "") if content["kind"] == "PersistentVolumeClaim" else ""


def _name(one: Sighting) -> ObjectName:
    info = kind_of(one.kind)
    assert info is not None, "kinds that are recorded are known"
    return ObjectName(info.api_version, one.kind, one.name, one.namespace)


def _without_node(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "spec": {key: value for key, value in content["spec"].items() if key != "nodeName"}}
