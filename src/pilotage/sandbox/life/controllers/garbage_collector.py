"""Garbage collection: what has lost its owners goes, in the way that the deletion of its owner asked for.

* Background: the owner is gone; each dependent is looked at and, if none of its owners exists, deleted.
* Foreground: the owner is marked and carries the finalizer `foregroundDeletion`; its dependents are deleted first, and
  when none that blocks the owner (blockOwnerDeletion) is left, the finalizer is removed.
* Orphan: the owner carries the finalizer `orphan`; it is removed from the ownerReferences of its dependents, then the
  finalizer is removed.

Owners in a circle: the one that closes it stops blocking its owner.

An object with several owners stays as long as one of them does; references to owners that are gone are removed. An
owner must live in the namespace of its dependent or in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.life.controllers.controller import (
    ALL_RESOURCES,
    BATCH,
    ControllerContext,
    Due,
    Interest,
    drop_finalizer,
)
from pilotage.sandbox.life.facts import ObjectFacts, Owner
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class GarbageCollector:
    name = "garbage-collector"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._index = context.index

    def interests(self) -> Mapping[str, Interest]:
        return {ALL_RESOURCES: self._seen}

    def reconcile(self, key: Key) -> float | None:
        facts = self._index.get(key)
        if facts is None:
            return None
        if facts.is_deleting:
            if ORPHAN in facts.finalizers:
                return self._orphan_dependents(facts)
            if FOREGROUND in facts.finalizers:
                return self._delete_dependents(facts)
            return None
        return self._check_owners(facts)

    def _seen(self, seen: ObservedChange) -> Iterable[Due]:
        new = seen.new
        if new is None:
            dependents = self._index.dependents(seen.facts.uid)
            return [Due(facts.key) for facts in dependents] + self._waiting_owners(seen.facts.owners)
        if new.is_deleting and (FOREGROUND in new.finalizers or ORPHAN in new.finalizers):
            return (Due(new.key),)
        if seen.old is not None and seen.old.owners == new.owners:
            return ()  # when an owner goes, that change makes its dependents due
        dues: list[Due] = []
        if any(self._is_absent(new, owner) or self._is_waiting(owner) for owner in new.owners):
            dues.append(Due(new.key))
        return dues if seen.old is None else dues + self._waiting_owners(seen.old.owners)

    def _waiting_owners(self, owners: Iterable[Owner]) -> list[Due]:
        found = [self._index.by_uid(owner.uid) for owner in owners if self._is_waiting(owner)]
        return [Due(facts.key) for facts in found if facts is not None]

    def _is_absent(self, facts: ObjectFacts, owner: Owner) -> bool:
        found = self._index.by_uid(owner.uid)
        return found is None or found.key.namespace not in ("", facts.key.namespace)

    def _is_waiting(self, owner: Owner) -> bool:
        """Whether the owner is being deleted and waits for its dependents to go first."""
        found = self._index.by_uid(owner.uid)
        return found is not None and found.is_deleting and FOREGROUND in found.finalizers

    def _check_owners(self, facts: ObjectFacts) -> float | None:
        absent = [owner for owner in facts.owners if self._is_absent(facts, owner)]
        present = [owner for owner in facts.owners if owner not in absent]
        waiting = [owner for owner in present if self._is_waiting(owner)]
        if len(present) > len(waiting):
            self._drop_owners(facts, [*absent, *waiting])
        elif waiting:
            has_dependents = bool(self._index.dependents(facts.uid))
            if any(one.is_deleting and FOREGROUND in one.finalizers for one in self._index.dependents(facts.uid)):
                self._unblock_owners(facts)
            self._context.delete(facts, propagationPolicy="Foreground" if has_dependents else "Background")
        elif absent:
            self._delete_as_marked(facts)
        return None

    def _delete_as_marked(self, facts: ObjectFacts) -> None:
        if ORPHAN in facts.finalizers:
            policy = "Orphan"
        else:
            policy = "Foreground" if FOREGROUND in facts.finalizers else "Background"
        self._context.delete(facts, propagationPolicy=policy)

    def _drop_owners(self, facts: ObjectFacts, dropped: Iterable[Owner]) -> None:
        uids = {owner.uid for owner in dropped}
        obj = self._context.read(facts.key) if uids else None
        if obj is None or obj["metadata"].get("uid") != facts.uid:
            return
        kept = [ref for ref in obj["metadata"].get("ownerReferences") or () if ref.get("uid") not in uids]
        obj["metadata"]["ownerReferences"] = kept
        if not kept:
            del obj["metadata"]["ownerReferences"]
        self._context.write_metadata(facts.key, obj)

    def _unblock_owners(self, facts: ObjectFacts) -> None:
        """A circle: what waits for this one must not be waited for by it."""
        obj = self._context.outline(facts.key)
        if obj is not None:
            for reference in obj["metadata"]["ownerReferences"]:
                reference["blockOwnerDeletion"] = False
            self._context.write_metadata(facts.key, obj)

    def _orphan_dependents(self, facts: ObjectFacts) -> float | None:
        dependents = self._index.dependents(facts.uid)
        for dependent in dependents[:BATCH]:
            self._drop_owners(dependent, [owner for owner in dependent.owners if owner.uid == facts.uid])
        if len(dependents) > BATCH:
            return 0.0
        self._remove_finalizer(facts, ORPHAN)
        return None

    def _delete_dependents(self, facts: ObjectFacts) -> float | None:
        dependents = self._index.dependents(facts.uid)
        for dependent in [dependent for dependent in dependents if not dependent.is_deleting][:BATCH]:
            self._check_owners(dependent)
        dependents = self._index.dependents(facts.uid)
        if not any(_blocks(dependent, facts.uid) for dependent in dependents):
            self._remove_finalizer(facts, FOREGROUND)
            return None
        return None if all(dependent.is_deleting for dependent in dependents) else 0.0

    def _remove_finalizer(self, facts: ObjectFacts, finalizer: str) -> None:
        obj = self._context.read(facts.key)
        if obj is not None and drop_finalizer(obj, finalizer):
            self._context.write_metadata(facts.key, obj)


def _blocks(dependent: ObjectFacts, owner_uid: str) -> bool:
    return any(owner.uid == owner_uid and owner.block_owner_deletion for owner in dependent.owners)
