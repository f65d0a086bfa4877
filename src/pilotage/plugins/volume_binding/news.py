"""News of claims and their volumes, for those who wait for a claim to be bound.

The volume controller answers by changing the claim or the volume that names it. Whoever waits is woken by either, so
that a pod goes on as soon as its last volume is there.
"""

from __future__ import annotations

from asyncio import Event
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pilotage.api import ClusterIndex


class VolumeNews(ClusterIndex):
    kinds = frozenset({"PersistentVolume", "PersistentVolumeClaim"})
    keeps_more = True

    def __init__(self) -> None:
        self._bells: dict[str, dict[Event, None]] = {}
        """Claim ("namespace/name") -> the bells of those who wait for it."""

    @contextmanager
    def of(self, claim_keys: Iterable[str]) -> Iterator[Event]:
        """A bell that rings when these claims change, or volumes that name them; changes of status do not count."""
        bell, keys = Event(), list(claim_keys)
        for key in keys:
            self._bells.setdefault(key, {})[bell] = None
        try:
            yield bell
        finally:
            for key in keys:
                bells = self._bells[key]
                bells.pop(bell, None)
                if not bells:
                    del self._bells[key]

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        # Whether a claim is bound is told by spec and annotations; half of the changes are of the status only.
        if old is None or old.spec != new.spec or old.annotations != new.annotations:
            self._ring(kind, new)

    def object_removed(self, kind: str, obj: Any) -> None:
        self._ring(kind, obj)

    def _ring(self, kind: str, obj: Any) -> None:
        if not self._bells:
            return
        key = obj.key
        if kind == "PersistentVolume":
            reference = obj.spec.claim_ref
            key = "" if reference is None else f"{reference.namespace}/{reference.name}"
        for bell in self._bells.get(key, ()):
            bell.set()
