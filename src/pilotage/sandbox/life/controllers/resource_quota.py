"""ResourceQuotas: a status that says what is allowed and how much of it is used.

New objects are counted as they are admitted (`operations/quotas.py`). Here all is counted anew whenever something
may have been given back: an object is gone, a pod has ended, or the quota or its status was changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pilotage.sandbox.life.controllers.controller import ALL_RESOURCES, ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.rules.resource_quota import QUOTAS, resources_of, total_usage
from pilotage.sandbox.storage.store import Key

_DELAY_SECONDS: Final = 0.05
_COUNTED_PER_SECOND: Final = 5_000
"""A namespace of many objects is counted less often."""


class ResourceQuotaController:
    name = "resourcequota"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._quotas_in: dict[str, dict[Key, int]] = {}
        """By namespace, the quotas and how many objects were counted for them."""

    def interests(self) -> Mapping[str, Interest]:
        return {ALL_RESOURCES: self._seen}

    def reconcile(self, key: Key) -> float | None:
        quota = self._context.read(key)
        if quota is None or "deletionTimestamp" in quota["metadata"]:
            return None
        hard = (quota.get("spec") or {}).get("hard") or {}
        objects = list(self._objects(key.namespace, resources_of(hard)))
        self._quotas_in.setdefault(key.namespace, {})[key] = len(objects)
        status = {"hard": dict(hard), "used": total_usage(quota, objects)}
        if status != quota.get("status"):
            quota["status"] = status
            self._context.write_status(key, quota)
        return None

    def _objects(self, namespace: str, resources: Iterable[str]) -> Iterator[tuple[str, Object]]:
        for resource in resources:
            for record in self._context.api.store.list(resource, namespace):
                yield resource, record.object()

    def _seen(self, seen: ObservedChange) -> Iterable[Due]:
        key = seen.key
        if key.resource == QUOTAS:
            quotas = self._quotas_in.setdefault(key.namespace, {})
            if seen.new is None:
                quotas.pop(key, None)
            else:
                quotas.setdefault(key, 0)
        quotas = self._quotas_in.get(key.namespace, {})
        if not quotas or not (key.resource == QUOTAS or seen.new is None or _has_ended(seen)):
            return ()
        return [Due(quota, _DELAY_SECONDS + count / _COUNTED_PER_SECOND) for quota, count in quotas.items()]


def _has_ended(seen: ObservedChange) -> bool:
    old, new = seen.old, seen.new
    return isinstance(new, PodFacts) and isinstance(old, PodFacts) and new.is_finished and not old.is_finished
