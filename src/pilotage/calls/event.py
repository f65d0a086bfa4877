"""Record an events.k8s.io Event about a pod: what `kubectl describe` shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance
from pilotage.model import KINDS, Pod

_MAX_NOTE = 1024


@dataclass(frozen=True, slots=True)
class EventFacts:
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


class EventCreation(ApiCall):
    """POST events; lost events are a pity, never a reason to wait."""

    __slots__ = ("_facts", "_pod")

    kind: ClassVar[str] = "event"
    lane: ClassVar[Lane] = Lane.EVENT
    relevance: ClassVar[Relevance] = Relevance.EVENT

    def __init__(self, pod: Pod, facts: EventFacts) -> None:
        self._pod = pod
        self._facts = facts

    @property
    def object_key(self) -> str:
        return f"{self._pod.uid}/{self._facts.name_suffix}"

    async def perform(self, writer: ApiWriter) -> None:
        pod, facts = self._pod, self._facts
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{pod.name}.{facts.name_suffix}", "namespace": pod.namespace},
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
