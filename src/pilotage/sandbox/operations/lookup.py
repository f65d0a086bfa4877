"""Cached look-ups for admission: priority classes and the like are read for every pod and change hardly ever.

The cache of a resource lives until the next write to that resource. What is handed out is shared and must not be
altered.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pilotage.sandbox.storage.records import Change, Key
from pilotage.sandbox.storage.store import Store

Objects: TypeAlias = list[dict[str, Any]]


class CachedLookup:
    """The `Lookup` of `sandbox.admission`, on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._objects: dict[str, dict[Key, dict[str, Any]]] = {}
        self._lists: dict[str, dict[str | None, Objects]] = {}

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        key = Key(resource, namespace, name)
        objects = self._objects_of(resource)
        found = objects.get(key)
        if found is None:
            record = self._store.get(key)
            if record is None:
                return None
            found = objects[key] = record.object()
        return found

    def list(self, resource: str, namespace: str | None = None) -> Objects:
        self._objects_of(resource)
        lists = self._lists[resource]
        found = lists.get(namespace)
        if found is None:
            found = lists[namespace] = [record.object() for record in self._store.list(resource, namespace)]
        return found

    def _objects_of(self, resource: str) -> dict[Key, dict[str, Any]]:
        objects = self._objects.get(resource)
        if objects is None:
            objects = self._objects[resource] = {}
            self._lists[resource] = {}
            self._store.subscribe(resource, self._forget)
        return objects

    def _forget(self, change: Change) -> None:
        self._objects[change.record.key.resource].clear()
        self._lists[change.record.key.resource].clear()
