"""What a controller is: it says which changes concern which of its keys, and it reconciles one key at a time.

    store change -> index -> ObservedChange -> interests()[resource](change) -> [Due(key, after seconds)] -> work queue
    work queue -> reconcile(key) -> None: done | seconds: look again then | exception: again, later and later

A controller is level-triggered: `reconcile` looks at what is there now and does what is missing, whatever the change
was. It acts through the Api only, synchronously, so nothing else changes while it runs, and it does a
bounded amount of work (at most `BATCH` writes) before it returns 0.0 to be called again after the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pilotage.clock import Clock, parse_rfc3339, rfc3339
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError, forbidden
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.life.facts import ObjectFacts
from pilotage.sandbox.life.object_index import ObjectIndex, ObservedChange
from pilotage.sandbox.life.webhook_gate import WebhookGate
from pilotage.sandbox.storage.store import Key

Object: TypeAlias = dict[str, Any]

ALL_RESOURCES: Final = "*"
BATCH: Final = 50
"""Writes that one call of `reconcile` may do before it lets others run."""
MANY: Final = 5_000
"""An owner that lacks more pods than this gets them at a pace that leaves time for all others."""
PACE_SECONDS: Final = 0.05
"""Between two batches then."""
MOST_PODS: Final = 100_000
"""In a cluster, if controllers are to create more."""
CHILD_DELAY: Final = 0.05
"""How long changes of children are collected before their owner is looked at: many pods change at about the same time,
and their owner wants to count them once."""


_STATUS_WRITE: Final = ("apiVersion", "kind", "metadata", "status")


class Due(NamedTuple):
    """Look at `key` in `after` seconds (or earlier, if another caller asks for it)."""

    key: Key
    after: float = 0.0


Interest: TypeAlias = Callable[[ObservedChange], Iterable[Due]]


class Controller(Protocol):
    """One of the loops that make the sandbox live."""

    name: str

    def interests(self) -> Mapping[str, Interest]:
        """By the store's resource (or ALL_RESOURCES): which keys a change concerns. Must be quick and not write."""

    def reconcile(self, key: Key) -> float | None:
        """Bring one key closer to what it should be; returns in how many seconds to look again, if at all."""


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What controllers work with."""

    api: Api
    clock: Clock
    rng: random.Random
    index: ObjectIndex
    most_pods: int = MOST_PODS
    authority: str = ""
    """The certificate (PEM) by which clients know the API server; empty: it is served without TLS."""
    gate: WebhookGate | None = None
    """None: nobody asks webhooks."""

    def timestamp(self) -> str:
        """Now, as Kubernetes writes it."""
        return _whole_second(int(self.clock.time()))

    def seconds_until(self, timestamp: str, seconds: float) -> float:
        """How long it takes until `seconds` after `timestamp` (negative: it was that long ago)."""
        return parse_rfc3339(timestamp) + seconds - self.clock.time()

    def read(self, key: Key) -> Object | None:
        """The whole object, or None if it is gone."""
        record = self.api.store.get(key)
        return None if record is None else record.object()

    def outline(self, key: Key) -> Object | None:
        """The object with its spec left as JSON: cheaper, for those who look at metadata and status only."""
        record = self.api.store.get(key)
        return None if record is None else record.outline()

    # The verbs behind the Api answer with a record, which saves decoding what is not read.

    def create(self, resource: str, namespace: str, obj: Object) -> None:
        resource_type = self.api.registry.of(resource)
        self._pass("POST", resource_type, namespace, "", obj)
        self.api.verbs.create(resource_type, namespace, obj)

    def create_pods(self, owner: Object, pods: Iterable[Object]) -> None:
        """Create a batch of pods; ApiError, and an Event about the owner, when the cluster may not have more."""
        for pod in pods:
            if self.api.store.count("pods") >= self.most_pods:
                text = (
                    f"the cluster has {self.most_pods} pods, controllers create no more; "
                    "delete some, or start the sandbox with a larger --max-pods"
                )
                record_failed_create(self, owner, text)
                raise forbidden("pods", "", text)
            self.create("pods", owner["metadata"]["namespace"], pod)

    def write(self, key: Key, obj: Object, subresource: str = "") -> None:
        """Replace the object (not its status), if no one changed it since it was read."""
        resource_type = self.api.registry.of(key.resource)
        record = self.api.verbs.read(resource_type, key.namespace, key.name)
        self._pass("PUT", resource_type, key.namespace, key.name, obj, subresource)
        self.api.verbs.update(resource_type, record, obj, subresource=subresource)

    def write_status(self, key: Key, obj: Object) -> None:
        """Replace the status of the object, if no one changed it since it was read."""
        self.write(key, {field: obj[field] for field in _STATUS_WRITE if field in obj}, "status")

    def write_metadata(self, key: Key, obj: Object) -> None:
        """Replace the metadata of the object and nothing else, if no one changed it since it was read."""
        resource_type = self.api.registry.of(key.resource)
        record = self.api.verbs.read(resource_type, key.namespace, key.name)
        if self.gate is not None:
            whole = {**record.object(), "metadata": obj["metadata"]}
            self._pass("PUT", resource_type, key.namespace, key.name, whole)
        self.api.verbs.update_metadata(resource_type, record, obj)

    def delete(self, facts: ObjectFacts, **options: Any) -> bool:
        """Delete just this object, not a namesake; False if it is gone already."""
        record = self.api.store.get(facts.key)
        if record is None or record.uid != facts.uid:
            return False
        resource_type = self.api.registry.of(facts.key.resource)
        options = {"preconditions": {"uid": facts.uid}, **options}
        self._pass("DELETE", resource_type, facts.key.namespace, facts.key.name, options)
        self.api.verbs.delete(resource_type, record, options)
        return True

    def _pass(
        self, method: str, resource_type: ResourceType, namespace: str, name: str, obj: Object, subresource: str = ""
    ) -> None:
        if self.gate is not None:
            self.gate.check(method, resource_type, namespace, name, obj, subresource)


def pause_after_batch(missing: int) -> float:
    """In how many seconds to go on with a batch, if so many pods are missing in all."""
    return PACE_SECONDS if missing > MANY else 0.0


def record_failed_create(context: ControllerContext, owner: Object, message: str) -> None:
    """One Event per owner says why it does not get its pods."""
    record_event(context, owner, "Warning", "FailedCreate", message)


def record_event(context: ControllerContext, about: Object, event_type: str, reason: str, message: str) -> None:
    """Record an Event once per object and reason."""
    metadata, now = about["metadata"], context.timestamp()
    reference = {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": metadata["name"]}
    event = {
        "metadata": {
            "name": f"{metadata['name'][:200]}.{metadata['uid'][:13]}.{reason.lower()}",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {**reference, "namespace": metadata["namespace"], "uid": metadata["uid"]},
        "type": event_type,
        "reason": reason,
        "message": message,
        "source": {"component": f"{about['kind'].lower()}-controller"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    with suppress(ApiError):  # it was recorded before, or its namespace is going
        context.create("events", metadata["namespace"], event)


@lru_cache(maxsize=16)
def _whole_second(epoch_seconds: int) -> str:
    return rfc3339(epoch_seconds)


def drop_finalizer(obj: Object, finalizer: str) -> bool:
    """Take a finalizer off the object; False if it carries no such one."""
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        return False
    kept = [name for name in finalizers if name != finalizer]
    if kept:
        obj["metadata"]["finalizers"] = kept
    else:
        del obj["metadata"]["finalizers"]
    return True


def itself(seen: ObservedChange) -> Iterable[Due]:
    """The interest of a controller in its own kind; an object that is gone needs nothing any more."""
    return () if seen.new is None else (Due(seen.new.key),)


def controller_reference(owner: Object) -> Object:
    """The ownerReference by which `owner` controls what it creates."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
