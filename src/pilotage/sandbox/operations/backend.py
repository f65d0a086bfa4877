"""What every verb of the object API works on: the store, the served kinds, the clock and the source of chance."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotage.clock import Clock, rfc3339
from pilotage.sandbox.errors import not_found
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType
from pilotage.sandbox.storage.records import NO_LABELS, Key, Record
from pilotage.sandbox.storage.store import Store

Object = dict[str, Any]

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Backend:
    """Shared by the verbs of one sandbox."""

    store: Store
    registry: ResourceRegistry
    clock: Clock
    rng: random.Random
    queued: frozenset[str] = frozenset()
    """Integrations of workload queueing: of their kinds nothing that names a queue starts by itself."""
    mounts_tokens: bool = False
    """Pods get a token of their ServiceAccount."""
    _second: int = field(default=-1, init=False)
    _second_text: str = field(default="", init=False)

    def now(self) -> str:
        """The time as objects carry it, in whole seconds; formatted once per second."""
        second = int(self.clock.time())
        if second != self._second:
            self._second = second
            self._second_text = rfc3339(second)
        return self._second_text

    def find(self, resource_type: ResourceType, namespace: str, name: str) -> Record | None:
        scope = namespace if resource_type.namespaced else ""
        return self.store.get(Key(resource_type.storage, scope, name))

    def record(self, resource_type: ResourceType, namespace: str, name: str) -> Record:
        """The stored object; ApiError 404 when there is none."""
        found = self.find(resource_type, namespace, name)
        if found is None:
            raise not_found(resource_type.qualified, name)
        return found


def unsaved_record(key: Key, obj: Object, revision: int) -> Record:
    """What a dry run answers with: a record that was never stored."""
    metadata = obj["metadata"]
    if revision:
        metadata["resourceVersion"] = str(revision)
    labels = metadata.get("labels")
    return Record(key, revision, _encode(obj), metadata.get("uid", ""), dict(labels) if labels else NO_LABELS)
