"""Hand everything that is known to a new engine: what is referred to comes first, what it cannot take is left out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from pilotage.jobs.engine import JobQueueing
from pilotage.observe.skipped_objects import SkippedObjects

log = logging.getLogger(__name__)

NAMESPACE: Final = "Namespace"
FOR_THE_ENGINE: Final = (
    "RuntimeClass",
    "LimitRange",
    "ResourceFlavor",
    "Cohort",
    "AdmissionCheck",
    "ClusterQueue",
    "LocalQueue",
    "Workload",
)
"""In the order in which a new engine gets them, after the namespaces."""
_MOST_ROUNDS: Final = 100

Identity = tuple[str, str]
"""Kind and key."""
ObjectsOf = Callable[[str], Iterable[Any]]


class EngineSpoiled(Exception):
    """The engine raised in the middle of something: what it knows cannot be relied on."""


class LeftOut:
    """The objects that no engine gets to see until they change, because one raised for them."""

    def __init__(self, skipped: SkippedObjects | None = None) -> None:
        self._skipped = skipped if skipped is not None else SkippedObjects()
        self._known: dict[Identity, None] = {}
        self.on_added: Callable[[Identity, str], None] = lambda identity, error: None
        """Called with what is left out, and why."""

    def __contains__(self, identity: Identity) -> bool:
        return identity in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, identity: Identity, error: Exception) -> None:
        self._known[identity] = None
        self.on_added(identity, self._skipped.skip(*identity, "queueing", error).error)

    def discard(self, kind: str, key: str) -> None:
        """It has changed, or it is gone."""
        if self._known and (kind, key) in self._known:
            del self._known[kind, key]
            self._skipped.understood(kind, key)

    def after(self, engine: JobQueueing, kind: str, obj: Any, error: Exception) -> bool:
        """The engine raised when it got an object: leave out what it raised for; whether it can go on."""
        identity = engine.culprit or (kind, obj.key)
        self.add(identity, error)
        if identity != (kind, obj.key) or kind == NAMESPACE:
            return False
        try:
            engine.delete(obj)
        except Exception:
            log.debug("an object cannot be taken out of the engine: kind=%s object=%s", kind, obj.key, exc_info=True)
            return False
        return True


def fill(engine: JobQueueing, objects_of: ObjectsOf, left_out: LeftOut) -> None:
    """`objects_of` gives the objects of a kind. EngineSpoiled: begin again with another engine."""
    for kind in (NAMESPACE, *FOR_THE_ENGINE):
        for obj in objects_of(kind):
            if len(left_out) and (kind, obj.key) in left_out:
                continue
            try:
                if kind == NAMESPACE:
                    engine.set_namespace(obj.name, obj.labels)
                else:
                    engine.upsert(obj)
            except Exception as error:
                if not left_out.after(engine, kind, obj, error):
                    raise EngineSpoiled from error
    try:
        engine.settle()
    except Exception as error:
        if engine.culprit is not None:
            left_out.add(engine.culprit, error)
        raise EngineSpoiled from error


def filled(make_engine: Callable[[], JobQueueing], objects_of: ObjectsOf, left_out: LeftOut) -> JobQueueing:
    """A new engine that knows everything but what it raises for; EngineSpoiled if leaving out does not help."""
    while True:
        engine, before = make_engine(), len(left_out)
        try:
            fill(engine, objects_of, left_out)
        except EngineSpoiled:
            if len(left_out) == before:
                raise
        else:
            return engine
