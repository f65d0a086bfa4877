"""Record an events.k8s.io Event about any object that is not a pod: a workload, a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_conflict
from pilotage.calls.event import shortened
from pilotage.model import KINDS
from pilotage.model.names import event_name

_NO_NAMESPACE = "default"
"""Where events about objects without a namespace are kept."""


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ObjectEventFacts:
    type: str
    reason: str
    action: str
    note: str
    reporter: str
    instance: str
    time: str
    name_suffix: str


class ObjectEvent(ApiCall):
    """POST events; lost events are a pity, never a reason to wait."""

    __slots__ = ("_facts", "_regarding")

    kind: ClassVar[str] = "object_event"
    lane: ClassVar[Lane] = Lane.EVENT
    relevance: ClassVar[int] = Relevance.EVENT
    is_repeatable: ClassVar[bool] = True

    def __init__(self, regarding: Regarding, facts: ObjectEventFacts) -> None:
        self._regarding = regarding
        self._facts = facts

    @property
    def object_key(self) -> str:
        return f"{self._regarding.uid}/{self._facts.name_suffix}"

    async def perform(self, writer: ApiWriter) -> None:
        regarding, facts = self._regarding, self._facts
        namespace = regarding.namespace or _NO_NAMESPACE
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": event_name(regarding.name, facts.name_suffix), "namespace": namespace},
            "eventTime": facts.time,
            "reportingController": facts.reporter,
            "reportingInstance": facts.instance,
            "action": facts.action,
            "reason": facts.reason,
            "type": facts.type,
            "note": shortened(facts.note),
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        }
        try:
            await writer.create(KINDS["events"], namespace, msgspec.json.encode(body))
        except Exception as error:
            # Its name is its own: if it exists, an earlier try succeeded.
            if not is_conflict(error):
                raise
