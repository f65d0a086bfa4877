"""Who belongs to whom, kept up to date from the store's changes: the controllers' one view of the cluster.

Controllers must never scan all pods to find the few that concern them. The index holds the facts of every object and
answers in time proportional to the answer: which object has this uid, what does this owner own, which pods are on this
node. It is fed synchronously by the store, so that after a write it is never stale.

Iteration orders are those in which objects appeared, never those of a set: they reach decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from pilotage.sandbox.life.facts import NodeObjectFacts, ObjectFacts, PodFacts, read_facts
from pilotage.sandbox.life.owned_pods import NO_PODS, OwnedPods
from pilotage.sandbox.storage.store import Change, Key, Store

UNINTERESTING: Final = frozenset({"events", "events.events.k8s.io"})
"""Written in great numbers, without owners, owning nothing."""


class ObservedChange(msgspec.Struct, frozen=True, gc=False):
    """One change: what was known before (None: the object is new) and after it (None: the object is gone)."""

    old: ObjectFacts | None
    new: ObjectFacts | None
    facts: ObjectFacts
    """The facts after the change, or the last ones of an object that is gone."""

    @property
    def key(self) -> Key:
        return self.facts.key


class ObjectIndex:
    """Facts by key, by uid, by owner and by node, what each controller has in pods, and the members of PodGroups."""

    def __init__(self) -> None:
        self._facts: dict[Key, ObjectFacts] = {}
        self._key_of: dict[str, Key] = {}
        self._dependents: dict[str, dict[Key, None]] = {}
        self._pods_on: dict[str, dict[Key, None]] = {}
        self._nodes: dict[str, NodeObjectFacts] = {}
        self._owned: dict[str, OwnedPods] = {}
        self._members: dict[str, dict[Key, None]] = {}

    def follow(self, store: Store, listener: Callable[[ObservedChange], None]) -> Callable[[], None]:
        """Take in all that is stored and then every change, passing each on; returns the function that ends it."""

        def on_change(change: Change) -> None:
            if change.record.key.resource not in UNINTERESTING:
                listener(self.apply(change))

        unsubscribe = store.subscribe(None, on_change)
        for resource in store.resources():
            if resource not in UNINTERESTING:
                for record in store.list(resource):
                    listener(self._put(read_facts(record)))
        return unsubscribe

    def apply(self, change: Change) -> ObservedChange:
        facts = read_facts(change.record)
        return self._remove(facts) if change.type == "DELETED" else self._put(facts)

    def get(self, key: Key) -> ObjectFacts | None:
        return self._facts.get(key)

    def pod(self, key: Key) -> PodFacts | None:
        facts = self._facts.get(key)
        return facts if isinstance(facts, PodFacts) else None

    def node(self, name: str) -> NodeObjectFacts | None:
        return self._nodes.get(name)

    def nodes(self) -> Iterable[NodeObjectFacts]:
        return self._nodes.values()

    def by_uid(self, uid: str) -> ObjectFacts | None:
        key = self._key_of.get(uid)
        return None if key is None else self._facts[key]

    def dependents(self, uid: str) -> list[ObjectFacts]:
        """All objects that name this uid among their owners."""
        return [self._facts[key] for key in self._dependents.get(uid, ())]

    def owned_pods(self, uid: str) -> OwnedPods:
        """The pods that the object with this uid controls."""
        return self._owned.get(uid, NO_PODS)

    def pods_on(self, node_name: str) -> list[Key]:
        return list(self._pods_on.get(node_name, ()))

    def members(self, namespace: str, group: str) -> list[PodFacts]:
        """The pods that name this PodGroup, whether or not it exists."""
        keys = self._members.get(f"{namespace}/{group}", ())
        return [pod for key in keys if (pod := self.pod(key)) is not None]

    def check(self) -> None:
        """Every look-up leads to an object that is there, and each object is found by all of its look-ups."""
        assert len(self._key_of) == len(self._facts), "one uid per object"
        for uid, key in self._key_of.items():
            assert self._facts[key].uid == uid
        for table in (self._dependents, self._pods_on, self._members):
            assert all(table.values()), "no empty groups are kept"
            assert all(key in self._facts for group in table.values() for key in group)
        for facts in self._facts.values():
            assert all(facts.key in self._dependents[owner.uid] for owner in facts.owners)
            if isinstance(facts, PodFacts) and facts.node_name:
                assert facts.key in self._pods_on[facts.node_name]
            if isinstance(facts, PodFacts) and facts.group:
                assert facts.key in self._members[f"{facts.key.namespace}/{facts.group}"]
        for uid, owned in self._owned.items():
            owned.check()
            assert all(pod is self._facts[pod.key] and pod.controller for pod in owned.pods()), uid
        controlled = sum(isinstance(f, PodFacts) and f.controller is not None for f in self._facts.values())
        assert controlled == sum(map(len, self._owned.values())), "each controlled pod has one place"

    def _put(self, facts: ObjectFacts) -> ObservedChange:
        key = facts.key
        old = self._facts.get(key)
        self._facts[key] = facts
        if old is None or old.uid != facts.uid:
            if old is not None:
                self._key_of.pop(old.uid, None)
            self._key_of[facts.uid] = key
        self._regroup(key, old, facts)
        if isinstance(facts, NodeObjectFacts):
            self._nodes[key.name] = facts
        return ObservedChange(old, facts, facts)

    def _remove(self, facts: ObjectFacts) -> ObservedChange:
        # The last state as the deletion gives it: it may say more than what was seen before.
        old = self._facts.pop(facts.key, None)
        if old is not None:
            self._key_of.pop(old.uid, None)
        self._regroup(facts.key, old, None)
        if facts.key.resource == "nodes":
            self._nodes.pop(facts.key.name, None)
        return ObservedChange(facts, None, facts)

    def _regroup(self, key: Key, old: ObjectFacts | None, new: ObjectFacts | None) -> None:
        old_owners, new_owners = (old.owners if old else ()), (new.owners if new else ())
        if old_owners != new_owners:
            for owner in old_owners:
                _drop(self._dependents, owner.uid, key)
            for owner in new_owners:
                self._dependents.setdefault(owner.uid, {})[key] = None
        if key.resource == "pods":
            self._regroup_pod(
                key, old if isinstance(old, PodFacts) else None, new if isinstance(new, PodFacts) else None
            )

    def _regroup_pod(self, key: Key, old: PodFacts | None, new: PodFacts | None) -> None:
        old_node, new_node = (old.node_name if old else ""), (new.node_name if new else "")
        if old_node != new_node:
            if old_node:
                _drop(self._pods_on, old_node, key)
            if new_node:
                self._pods_on.setdefault(new_node, {})[key] = None
        old_group, new_group = (old.group if old else ""), (new.group if new else "")
        if old_group != new_group:
            if old_group:
                _drop(self._members, f"{key.namespace}/{old_group}", key)
            if new_group:
                self._members.setdefault(f"{key.namespace}/{new_group}", {})[key] = None
        old_owner, new_owner = (old.controller if old else None), (new.controller if new else None)
        if old_owner is not None and (new_owner is None or new_owner.uid != old_owner.uid):
            owned = self._owned[old_owner.uid]
            owned.remove(key)
            if not owned:
                del self._owned[old_owner.uid]
        if new is not None and new_owner is not None:
            owned = self._owned.get(new_owner.uid) or self._owned.setdefault(new_owner.uid, OwnedPods())
            owned.put(new)


def _drop(table: dict[str, dict[Key, None]], group: str, key: Key) -> None:
    members = table.get(group)
    if members is not None:
        members.pop(key, None)
        if not members:
            del table[group]
