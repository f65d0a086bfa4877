"""Record an events.k8s.io Event about a pod or another object: what `kubectl describe` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct

from pilotage.api.calls import (
    ApiCall,
    ApiWriter,
    Lane,
    NewObject,
    ObjectReference,
    Relevance,
    is_conflict,
    is_not_found,
)
from pilotage.escaping import visible
from pilotage.model import KINDS, Pod, kind_of
from pilotage.model.custom_jobs import CustomJob
from pilotage.model.names import event_name

Subject: TypeAlias = Pod | ObjectReference
"""What an event is about."""
_MAX_NOTE = 1024
_NO_NAMESPACE = "default"
"""Where events about objects without a namespace are kept."""
_STRATEGIC_MERGE = "application/strategic-merge-patch+json"


class EventFacts(msgspec.Struct, frozen=True):
    """What happened to a pod or another object."""

    type: str
    reason: str
    action: str
    note: str
    reporter: str
    instance: str
    time: str
    name_suffix: str
    related: Pod | None = None
    """The other pod that has to do with it."""


class Repetition(Struct, frozen=True):
    """How often it has happened so far, and when last."""

    count: int
    last_observed_time: str

    def document(self) -> dict[str, int | str]:
        return {"count": self.count, "lastObservedTime": self.last_observed_time}


class EventCreation(ApiCall):
    """POST events, or PATCH the series of one that exists; lost events are a pity, never a reason to wait."""

    __slots__ = ("_facts", "_is_new", "_series", "_subject")

    kind: ClassVar[str] = "event"
    lane: ClassVar[Lane] = Lane.EVENT
    relevance: ClassVar[int] = Relevance.EVENT
    is_repeatable: ClassVar[bool] = True

    def __init__(
        self, subject: Subject, facts: EventFacts, series: Repetition | None = None, *, is_new: bool = True
    ) -> None:
        """Not `is_new`: the event was created before, and `series` is to be written into it."""
        self._subject = subject
        self._facts = facts
        self._series = series
        self._is_new = is_new

    @property
    def object_key(self) -> str:
        return f"{self._subject.uid}/{self._facts.name_suffix}"

    def merged_with(self, newer: ApiCall) -> ApiCall:
        if not isinstance(newer, EventCreation):
            return newer
        return EventCreation(newer._subject, newer._facts, newer._series, is_new=self._is_new)

    def follow(self, done: ApiCall) -> None:
        """What was in flight has created the event."""
        self._is_new = False

    def creation(self) -> NewObject | None:
        return NewObject(KINDS["events"], self._namespace, self._body()) if self._is_new else None

    async def perform(self, writer: ApiWriter) -> None:
        try:
            await (self._create(writer) if self._is_new or self._series is None else self._write_series(writer))
        except Exception as error:
            if is_conflict(error) and self._is_new:
                # Its name is its own: if it exists, an earlier try succeeded.
                await self._write_series(writer)
            elif is_not_found(error) and not self._is_new:
                # Events are kept for an hour only; a series may last longer.
                await self._create(writer)
            else:
                raise

    async def _write_series(self, writer: ApiWriter) -> None:
        if self._series is not None:
            body = msgspec.json.encode({"series": self._series.document()})
            await writer.patch(KINDS["events"], self._namespace, self._name, body, content_type=_STRATEGIC_MERGE)

    @property
    def _name(self) -> str:
        return event_name(self._subject.name, self._facts.name_suffix)

    @property
    def _namespace(self) -> str:
        return self._subject.namespace or _NO_NAMESPACE

    async def _create(self, writer: ApiWriter) -> None:
        await writer.create(KINDS["events"], self._namespace, self._body())

    def _body(self) -> bytes:
        facts = self._facts
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "eventTime": facts.time,
            "reportingController": facts.reporter,
            "reportingInstance": facts.instance,
            "action": facts.action,
            "reason": facts.reason,
            "type": facts.type,
            "note": shortened(facts.note),
            "regarding": _reference(self._subject),
        }
        if facts.related is not None:
            body["related"] = _reference(facts.related)
        if self._series is not None:
            body["series"] = self._series.document()
        return msgspec.json.encode(body)


def subject_of(obj: Any) -> Subject:
    """What an event about this object refers to; TypeError if its kind is unknown."""
    if isinstance(obj, Pod | ObjectReference):
        return obj
    if isinstance(obj, Mapping):
        return _subject_of_document(obj)
    if isinstance(obj, CustomJob):
        return ObjectReference(obj.api_version, obj.kind, obj.namespace, obj.name, obj.uid, obj.resource_version)
    kind = kind_of(type(obj).__name__)
    if kind is None or not hasattr(obj, "metadata"):
        raise TypeError(
            f"an event cannot refer to a {type(obj).__name__}, whose kind is not known; "
            "write ObjectReference(api_version, kind, namespace, name, uid)"
        )
    return ObjectReference(kind.api_version, kind.kind, obj.namespace, obj.name, obj.uid, obj.resource_version)


def _subject_of_document(document: Mapping[str, Any]) -> ObjectReference:
    """Of an object in its JSON form."""
    metadata = document.get("metadata") or {}
    if not document.get("kind") or not metadata.get("name"):
        raise TypeError("an event cannot refer to a document without kind and metadata.name")
    return ObjectReference(
        str(document.get("apiVersion", "v1")),
        str(document["kind"]),
        *(str(metadata.get(field, "")) for field in ("namespace", "name", "uid", "resourceVersion")),
    )


def _reference(subject: Subject) -> dict[str, str]:
    api_version, kind = ("v1", "Pod") if isinstance(subject, Pod) else (subject.api_version, subject.kind)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
        "resourceVersion": subject.resource_version,
    }


def shortened(note: str, most: int = _MAX_NOTE) -> str:
    """A note that the API server accepts and that can be shown: so many bytes, without control characters."""
    note = visible(note)
    encoded = note.encode()
    if len(encoded) <= most:
        return note
    return encoded[: most - 4].decode(errors="ignore") + " ..."
