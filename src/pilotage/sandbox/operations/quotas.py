"""Quotas at the door: a write that uses more of a namespace than its ResourceQuotas allow is rejected.

What is used is noted in the status of the quotas with the write itself, so that the next write sees it;
what is given back is found by the controller (`life/controllers/resource_quota.py`).
"""

from __future__ import annotations

from pilotage.sandbox.operations.backend import Backend, Object
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.rules.resource_quota import QUOTAS, charge
from pilotage.sandbox.storage.records import Key


class Quotas:
    """What the ResourceQuotas of all namespaces allow."""

    def __init__(self, backend: Backend, lookup: CachedLookup) -> None:
        self._store = backend.store
        self._lookup = lookup

    def charge(self, key: Key, obj: Object, old: Object | None = None, *, dry_run: bool = False) -> None:
        """Note what the object uses (in the place of `old`); ApiError 403 if a quota does not allow it."""
        if not key.namespace:
            return
        quotas = self._lookup.list(QUOTAS, key.namespace)
        charged = [(quota, charge(quota, key.resource, obj, old)) for quota in quotas]
        for quota, used in charged:
            if used is not None and not dry_run:
                name = Key(QUOTAS, key.namespace, quota["metadata"]["name"])
                record = self._store.get(name)
                if record is not None:
                    current = record.object()
                    current["status"] = {**(current.get("status") or {}), "used": used}
                    self._store.update(name, current)
