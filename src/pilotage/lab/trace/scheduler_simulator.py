"""What kube-scheduler-simulator writes: an export of a cluster's state (JSON), or a record of events (JSON Lines).

An export is one moment: everything is there at second 0, and pods run until somebody deletes them. A record becomes a
recording, as if we had watched, and is then finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from pilotage.clock import parse_rfc3339, rfc3339_micro
from pilotage.lab.trace.content import Redaction, Sighting, sighting
from pilotage.lab.trace.finishing import finish
from pilotage.lab.trace.format import MAX_LINE, VERSION, TraceHeader, TraceRecord, Writer
from pilotage.lab.trace.openb import ImportProblem
from pilotage.lab.trace.recording import Recording, TraceState
from pilotage.model.codec import WatchEvent
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KINDS, kind_of

_SECTIONS: Final = {
    "namespaces": "namespaces",
    "priorityClasses": "priorityclasses",
    "storageClasses": "storageclasses",
    "nodes": "nodes",
    "pvs": "persistentvolumes",
    "pvcs": "persistentvolumeclaims",
    "pods": "pods",
}
"""Parts of an export, with the plural of their kind; in the order in which they are put."""
_EVENT_TYPES: Final = {"Add": "ADDED", "Update": "MODIFIED", "Delete": "DELETED"}
_EPOCH: Final = "1970-01-01T00:00:00Z"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    creation_timestamp: str | None = None


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    metadata: _Metadata = _Metadata()


class _Event(msgspec.Struct):
    time: str
    event: Literal["Add", "Update", "Delete"]
    resource: msgspec.Raw


def import_simulator(path: Path, output: Path, redaction: Redaction) -> str:
    """Write the trace of an export or a record; returns what else is to be said. ImportProblem, TraceError."""
    try:
        with path.open("rb") as file:
            first = file.readline(MAX_LINE)
    except OSError as error:
        raise ImportProblem(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        msgspec.json.decode(first, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _import_export(path, output, redaction)
    return _import_record(path, output, redaction)


def _import_export(path: Path, output: Path, redaction: Redaction) -> str:
    try:
        sections = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ImportProblem(f"{path}: is no export of kube-scheduler-simulator: {error}") from error
    if not sections.keys() & _SECTIONS.keys():
        raise ImportProblem(f"{path}: is no export of kube-scheduler-simulator: it has none of {', '.join(_SECTIONS)}")
    with Writer(output, TraceHeader(pilotage_trace=VERSION, start=_EPOCH, source="kube-scheduler-simulator")) as out:
        for section, plural in _SECTIONS.items():
            for record in _section_records(path, section, plural, sections.get(section), redaction):
                out.write(record)
    has_config = bytes(sections.get("schedulerConfig", msgspec.Raw(b"null"))) != b"null"
    return "its schedulerConfig is no part of a trace: give it to simulate with --config" if has_config else ""


def _section_records(
    path: Path, section: str, plural: str, data: msgspec.Raw | None, redaction: Redaction
) -> Iterator[TraceRecord]:
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw] | None) if data is not None else None
        for item in items or ():
            content = sighting(KINDS[plural], bytes(item), redaction).content
            yield TraceRecord(0.0, put=msgspec.Raw(msgspec.json.encode(content)))
    except (msgspec.DecodeError, DecodeError) as error:
        raise ImportProblem(f"{path}: {section}: {error}") from error


def _import_record(path: Path, output: Path, redaction: Redaction) -> str:
    left_out = 0
    events = _events(path)
    _, first_time, _ = first = next(events)
    header = TraceHeader(
        pilotage_trace=VERSION, start=rfc3339_micro(first_time), source="kube-scheduler-simulator", recording=True
    )
    at = 0.0
    with Writer(output, header) as out:
        recording = Recording(out, lambda: at, TraceState())
        for line, time, event in _with(first, events):
            resource = _resource(path, line, event)
            info = kind_of(resource.kind)
            if info is None:
                left_out += 1
                continue
            seen = _seen(path, line, event, redaction)
            if at > 0 or not _was_there(resource, first_time):
                at = max(at, round(time - first_time, 3))
            recording.apply(info.kind, [WatchEvent(_EVENT_TYPES[event.event], seen)])
            if recording.failure is not None:
                raise recording.failure
    finish(output)
    return f"{left_out:,} events of kinds that scheduling does not read are left out" if left_out else ""


_Line = tuple[int, float, _Event]


def _with(first: _Line, rest: Iterator[_Line]) -> Iterator[_Line]:
    yield first
    yield from rest


def _events(path: Path) -> Iterator[_Line]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise ImportProblem(f"{path}:{number}: the line is longer than {MAX_LINE >> 20} MiB")
            if not line.strip():
                continue
            try:
                event = msgspec.json.decode(line, type=_Event)
                yield number, parse_rfc3339(event.time), event
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
                raise ImportProblem(f"{path}:{number}: is no event of a record: {error}") from error


def _resource(path: Path, line: int, event: _Event) -> _Resource:
    try:
        return msgspec.json.decode(event.resource, type=_Resource)
    except msgspec.DecodeError as error:
        raise ImportProblem(f"{path}:{line}: resource: {error}") from error


def _was_there(resource: _Resource, start: float) -> bool:
    """Was the object made before the record began?"""
    try:
        return parse_rfc3339(resource.metadata.creation_timestamp or "") < start
    except ValueError:
        return False


def _seen(path: Path, line: int, event: _Event, redaction: Redaction) -> Sighting:
    resource = msgspec.json.decode(event.resource, type=dict[str, object])
    info = kind_of(str(resource["kind"]))
    assert info is not None, "the caller has looked"
    if event.event == "Delete":
        # Of what is gone the record has the name only.
        metadata = resource.get("metadata")
        fields = metadata if isinstance(metadata, dict) else {}
        return Sighting(info.kind, fields.get("namespace") or "", fields.get("name") or "", "", "", {})
    try:
        return sighting(info, bytes(event.resource), redaction)
    except DecodeError as error:
        raise ImportProblem(f"{path}:{line}: resource: {error}") from error
