"""Adoption and release: who controls what is said by labels, and ownerReferences follow them.

An object without a controller that a selector of its namespace matches gets the owner of that selector as its
controller. One whose labels its controller's selector does not match any more is let go. This holds for the pods of
all workloads, the ReplicaSets of Deployments and the ControllerRevisions of StatefulSets and DaemonSets; a StatefulSet
takes only pods that bear one of its names.

The selectors of each namespace are kept from changes, so that a change of a pod costs nothing unless its labels or its
controller changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.life.controllers.controller import (
    ControllerContext,
    Due,
    Interest,
    Object,
    controller_reference,
    drop_finalizer,
)
from pilotage.sandbox.life.controllers.job_tally import TRACKING
from pilotage.sandbox.life.facts import ObjectFacts, Owner
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

_PODS: Final = "pods"
_REPLICA_SETS: Final = "replicasets.apps"
_REVISIONS: Final = "controllerrevisions.apps"
_STATEFUL_SETS: Final = "statefulsets.apps"
_JOBS: Final = "jobs.batch"
_ADOPTS: Final[Mapping[str, tuple[str, ...]]] = {
    "replicasets.apps": (_PODS,),
    "replicationcontrollers": (_PODS,),
    _JOBS: (_PODS,),
    _STATEFUL_SETS: (_PODS, _REVISIONS),
    "daemonsets.apps": (_PODS, _REVISIONS),
    "deployments.apps": (_REPLICA_SETS,),
}
_ADOPTED: Final = (_PODS, _REPLICA_SETS, _REVISIONS)


class _Selecting(NamedTuple):
    """An object that controls what its selector matches."""

    uid: str
    selector: LabelSelector


class _ControllerSpec(msgspec.Struct):
    selector: dict[str, str] | None = None


class _ReplicationController(msgspec.Struct):
    spec: _ControllerSpec


class _SetSpec(msgspec.Struct):
    selector: LabelSelector | None = None


class _Set(msgspec.Struct):
    spec: _SetSpec


class AdoptionController:
    name = "adoption"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._index = context.index
        self._selecting: dict[str, dict[Key, _Selecting]] = {}

    def interests(self) -> Mapping[str, Interest]:
        return {**dict.fromkeys(_ADOPTED, self._child_seen), **dict.fromkeys(_ADOPTS, self._owner_seen)}

    def reconcile(self, key: Key) -> float | None:
        if key.resource in _ADOPTED:
            self._settle(key)
        if key.resource in _ADOPTS:
            self._gather(key)
        return None

    def _owner_seen(self, seen: ObservedChange) -> Iterable[Due]:
        key = seen.key
        dues = self._child_seen(seen) if key.resource in _ADOPTED else ()
        selecting = self._selecting.setdefault(key.namespace, {})
        record = self._context.api.store.get(key) if seen.new is not None and not seen.new.is_deleting else None
        selector = None if record is None else _selector(key.resource, record.body)
        if selector is None or selector.is_empty:
            selecting.pop(key, None)
            return dues
        known = selecting.get(key)
        selecting[key] = _Selecting(seen.facts.uid, selector)
        return dues if known == selecting[key] else (*dues, Due(key))

    def _child_seen(self, seen: ObservedChange) -> Iterable[Due]:
        new, old = seen.new, seen.old
        if new is None or not self._selecting.get(new.key.namespace):
            return ()
        if old is not None and old.uid == new.uid and old.controller == new.controller and old.labels == new.labels:
            return ()
        if new.controller is None:
            return () if new.is_deleting else (Due(new.key),)
        if old is None or old.labels == new.labels:
            return ()  # what a controller has just made matches
        return (Due(new.key),)

    def _gather(self, key: Key) -> None:
        """Settle what was there before the selector."""
        for resource in _ADOPTS[key.resource]:
            for record in self._context.api.store.list(resource, key.namespace):
                facts = self._index.get(record.key)
                if facts is not None and (facts.controller is None or facts.controller.uid == self._uid(key)):
                    self._settle(record.key)

    def _uid(self, key: Key) -> str:
        facts = self._index.get(key)
        return facts.uid if facts is not None else ""

    def _settle(self, key: Key) -> None:
        child = self._index.get(key)
        if child is None:
            return
        if child.controller is not None:
            self._release_unless_matching(child, child.controller)
        elif not child.is_deleting and (owner := self._owner_for(child)) is not None:
            self._adopt(child, owner)

    def _owner_for(self, child: ObjectFacts) -> Key | None:
        """The first object that may take it."""
        for key, selecting in self._selecting.get(child.key.namespace, {}).items():
            if child.key.resource not in _ADOPTS[key.resource] or not selecting.selector.matches(child.labels):
                continue
            if key.resource != _STATEFUL_SETS or _bears_name(child, key.name):
                return key
        return None

    def _adopt(self, child: ObjectFacts, owner_key: Key) -> None:
        owner, obj = self._context.outline(owner_key), self._context.outline(child.key)
        if owner is None or obj is None or "deletionTimestamp" in owner["metadata"]:
            return
        references = obj["metadata"].setdefault("ownerReferences", [])
        references[:] = [one for one in references if one.get("uid") != owner["metadata"]["uid"]]
        references.append(controller_reference(owner))
        if owner_key.resource == _JOBS and TRACKING not in obj["metadata"].get("finalizers", ()):
            obj["metadata"].setdefault("finalizers", []).append(TRACKING)
        self._context.write_metadata(child.key, obj)

    def _release_unless_matching(self, child: ObjectFacts, controller: Owner) -> None:
        owner = self._index.by_uid(controller.uid)
        if owner is None or owner.is_deleting:
            return
        selecting = self._selecting.get(child.key.namespace, {}).get(owner.key)
        if selecting is None or child.key.resource not in _ADOPTS.get(owner.key.resource, ()):
            return
        if selecting.selector.matches(child.labels):
            return
        obj = self._context.outline(child.key)
        if obj is None:
            return
        _remove_owner(obj, controller.uid)
        if owner.key.resource == _JOBS:
            drop_finalizer(obj, TRACKING)
        self._context.write_metadata(child.key, obj)


def _remove_owner(obj: Object, uid: str) -> None:
    kept = [one for one in obj["metadata"].get("ownerReferences") or () if one.get("uid") != uid]
    obj["metadata"]["ownerReferences"] = kept
    if not kept:
        del obj["metadata"]["ownerReferences"]


def _bears_name(child: ObjectFacts, set_name: str) -> bool:
    """Whether a pod is called like one of the set; its revisions may have any name."""
    parent, _, ordinal = child.key.name.rpartition("-")
    return child.key.resource == _REVISIONS or (parent == set_name and ordinal.isdecimal())


def _selector(resource: str, body: bytes) -> LabelSelector | None:
    try:
        if resource == "replicationcontrollers":
            labels = msgspec.json.decode(body, type=_ReplicationController).spec.selector
            return LabelSelector(match_labels=labels) if labels else None
        return msgspec.json.decode(body, type=_Set).spec.selector
    except msgspec.DecodeError:
        return None
