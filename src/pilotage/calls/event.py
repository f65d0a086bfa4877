"""Record an events.k8s.io Event about a pod: what `kubectl describe` shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_conflict, is_not_found
from pilotage.model import KINDS, Pod

_MAX_NOTE = 1024
_STRATEGIC_MERGE = "application/strategic-merge-patch+json"


class EventFacts(msgspec.Struct, frozen=True):
    """What happened to a pod."""

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


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often it has happened so far, and when last."""

    count: int
    last_observed_time: str

    def document(self) -> dict[str, int | str]:
        return {"count": self.count, "lastObservedTime": self.last_observed_time}


class EventCreation(ApiCall):
    """POST events, or PATCH the series of one that exists; lost events are a pity, never a reason to wait."""

    __slots__ = ("_facts", "_is_new", "_pod", "_series")

    kind: ClassVar[str] = "event"
    lane: ClassVar[Lane] = Lane.EVENT
    relevance: ClassVar[int] = Relevance.EVENT
    is_repeatable: ClassVar[bool] = True

    def __init__(self, pod: Pod, facts: EventFacts, series: Repetition | None = None, *, is_new: bool = True) -> None:
        """Not `is_new`: the event was created before, and `series` is to be written into it."""
        self._pod = pod
        self._facts = facts
        self._series = series
        self._is_new = is_new

    @property
    def object_key(self) -> str:
        return f"{self._pod.uid}/{self._facts.name_suffix}"

    def merged_with(self, newer: ApiCall) -> ApiCall:
        if not isinstance(newer, EventCreation):
            return newer
        return EventCreation(newer._pod, newer._facts, newer._series, is_new=self._is_new)

    def follow(self, done: ApiCall) -> None:
        """What was in flight has created the event."""
        self._is_new = False

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
            await writer.patch(KINDS["events"], self._pod.namespace, self._name, body, content_type=_STRATEGIC_MERGE)

    @property
    def _name(self) -> str:
        return f"{self._pod.name}.{self._facts.name_suffix}"

    async def _create(self, writer: ApiWriter) -> None:
        pod, facts = self._pod, self._facts
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self._name, "namespace": pod.namespace},
            "eventTime": facts.time,
            "reportingController": facts.reporter,
            "reportingInstance": facts.instance,
            "action": facts.action,
            "reason": facts.reason,
            "type": facts.type,
            "note": shortened(facts.note),
            "regarding": _reference(pod),
        }
        if facts.related is not None:
            body["related"] = _reference(facts.related)
        if self._series is not None:
            body["series"] = self._series.document()
        await writer.create(KINDS["events"], pod.namespace, msgspec.json.encode(body))


def _reference(pod: Pod) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "resourceVersion": pod.resource_version,
    }


def shortened(note: str) -> str:
    """A note that the API server accepts: at most 1024 bytes."""
    encoded = note.encode()
    if len(encoded) <= _MAX_NOTE:
        return note
    return encoded[: _MAX_NOTE - 4].decode(errors="ignore") + " ..."
