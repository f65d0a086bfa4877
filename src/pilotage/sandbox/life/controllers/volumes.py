"""Binding claims and volumes, and making volumes for the sandbox's storage classes.

    claim that names a volume, or that a volume names ------------------> bind
    class binds immediately: smallest fitting free volume --------------> bind, else provision
    class waits for the first consumer: annotation selected-node set ---> provision for that node
    that node is gone: the annotation is taken off, so that the scheduler chooses again
    claim gone: its volume is Released, and deleted if its reclaim policy is Delete
    volume gone: its claim is Lost

For a class that waits, the scheduler either reserves a free volume (it writes the claim into the volume) or chooses the
node of a new one (it writes the annotation); both arrive here as changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.controllers.provisioner import PROVISIONER, claim_reference, new_volume
from pilotage.sandbox.life.controllers.volume_index import BIND_COMPLETED, CLAIMS, VOLUMES, VolumeIndex
from pilotage.sandbox.life.controllers.volume_match import is_bound_to, smallest_fitting, storage_class_of
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.storage.store import Key

STORAGE_CLASSES: Final = "storageclasses.storage.k8s.io"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"

_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


class VolumeController:
    name = "volume"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._volumes = VolumeIndex()
        self._lookup = CachedLookup(context.api.store)

    def interests(self) -> Mapping[str, Interest]:
        return {CLAIMS: self._claim_seen, VOLUMES: self._volume_seen, STORAGE_CLASSES: self._class_seen}

    def reconcile(self, key: Key) -> float | None:
        if self._is_settled(key):
            return None
        obj = self._context.read(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        if key.resource == VOLUMES:
            self._sync_volume(key, obj)
        else:
            self._sync_claim(key, obj)
        return None

    def _claim_seen(self, seen: ObservedChange) -> Iterable[Due]:
        record = self._context.api.store.get(seen.key) if seen.new is not None else None
        if record is not None:
            self._volumes.put_claim(record)
            return () if self._is_settled(seen.key) else (Due(seen.key),)
        self._volumes.remove_claim(seen.key)
        return [Due(volume) for volume in self._volumes.volumes_of(seen.key)]

    def _volume_seen(self, seen: ObservedChange) -> Iterable[Due]:
        key = seen.key
        record = self._context.api.store.get(key) if seen.new is not None else None
        if record is None:
            claim = self._volumes.claim_of(key)
            self._volumes.remove(key)
            return () if claim is None else (Due(claim),)
        self._volumes.put(record)
        claim = self._volumes.claim_of(key)
        if claim is not None:
            return () if self._is_settled(claim) else (Due(key), Due(claim))
        free_class = self._volumes.free_class_of(key)
        return [Due(key), *(Due(waiting) for waiting in self._volumes.waiting(free_class or ""))]

    def _is_settled(self, key: Key) -> bool:
        """Whether a claim and a volume, of which `key` is one, are bound to each other already."""
        claim = self._volumes.claim_of(key) if key.resource == VOLUMES else key
        facts = self._context.index.get(claim) if claim is not None else None
        return facts is not None and self._volumes.is_settled(facts.key, facts.uid)

    def _class_seen(self, seen: ObservedChange) -> Iterable[Due]:
        return [Due(claim) for claim in self._volumes.waiting(seen.key.name)]

    def _sync_volume(self, key: Key, volume: Object) -> None:
        reference = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            self._set_phase(key, volume, "Available")
            return
        claim = self._context.read(Key(CLAIMS, reference.get("namespace", ""), reference.get("name", "")))
        if claim is not None and is_bound_to(volume, claim):
            if claim["spec"].get("volumeName") == key.name:
                self._set_phase(key, volume, "Bound")
            return
        self._set_phase(key, volume, "Released")
        facts = self._context.index.get(key)
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete" and facts is not None:
            self._context.delete(facts)

    def _sync_claim(self, key: Key, claim: Object) -> None:
        if claim["spec"].get("volumeName") and BIND_COMPLETED in (claim["metadata"].get("annotations") or {}):
            self._check_bound(key, claim)
            return
        volume = self._volume_for(key, claim) or self._provision(claim)
        if volume is None:
            self._volumes.wait(key, storage_class_of(claim))
        else:
            self._volumes.settle(key)
            self._bind(key, claim, volume)

    def _check_bound(self, key: Key, claim: Object) -> None:
        volume = self._context.read(Key(VOLUMES, "", claim["spec"]["volumeName"]))
        self._set_phase(key, claim, "Bound" if volume is not None and is_bound_to(volume, claim) else "Lost")

    def _volume_for(self, key: Key, claim: Object) -> Object | None:
        """The volume that exists and is to be bound to the claim."""
        named = claim["spec"].get("volumeName")
        if named:
            volume = self._context.read(Key(VOLUMES, "", named))
            is_free = volume is not None and not volume["spec"].get("claimRef")
            return volume if volume is not None and (is_free or is_bound_to(volume, claim)) else None
        for reserved in self._volumes.volumes_of(key):
            volume = self._context.read(reserved)
            if volume is not None and is_bound_to(volume, claim):
                return volume
        if self._waits_for_consumer(claim):
            return None
        free = (self._context.read(found) for found in self._volumes.free_volumes(storage_class_of(claim)))
        return smallest_fitting(claim, [volume for volume in free if volume is not None])

    def _class(self, claim: Object) -> Object | None:
        return self._lookup.get(STORAGE_CLASSES, "", storage_class_of(claim))

    def _waits_for_consumer(self, claim: Object) -> bool:
        storage_class = self._class(claim)
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _provision(self, claim: Object) -> Object | None:
        storage_class = self._class(claim)
        if storage_class is None or storage_class.get("provisioner") != PROVISIONER or claim["spec"].get("volumeName"):
            return None
        labels: Mapping[str, str] | None = None
        if self._waits_for_consumer(claim):
            node_name = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            if not node_name:
                return None
            node = self._context.api.store.get(Key("nodes", "", node_name))
            if node is None:
                self._ask_for_another_node(claim)
                return None
            labels = node.labels
        volume = new_volume(claim, storage_class, labels)
        try:
            self._context.create(VOLUMES, "", volume)
            return volume
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return self._context.read(Key(VOLUMES, "", volume["metadata"]["name"]))
            raise

    def _ask_for_another_node(self, claim: Object) -> None:
        metadata = claim["metadata"]
        del metadata["annotations"][SELECTED_NODE]
        self._context.write_metadata(Key(CLAIMS, metadata["namespace"], metadata["name"]), claim)

    def _bind(self, key: Key, claim: Object, volume: Object) -> None:
        name = volume["metadata"]["name"]
        if (volume["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            volume["spec"]["claimRef"] = claim_reference(claim)
            _annotate(volume, _BOUND_BY_CONTROLLER)
            self._context.write(Key(VOLUMES, "", name), volume)
        self._set_phase(Key(VOLUMES, "", name), volume, "Bound")
        if not claim["spec"].get("volumeName"):
            claim["spec"]["volumeName"] = name
            _annotate(claim, _BOUND_BY_CONTROLLER)
        _annotate(claim, BIND_COMPLETED)
        self._context.write(key, claim)
        status = {"accessModes": volume["spec"].get("accessModes"), "capacity": volume["spec"].get("capacity")}
        self._set_phase(key, claim, "Bound", **status)

    def _set_phase(self, key: Key, obj: Object, phase: str, **more: object) -> None:
        status: Object = {**(obj.get("status") or {}), "phase": phase, **more}
        if status != obj.get("status"):
            obj["status"] = status
            self._context.write_status(key, obj)


def _annotate(obj: Object, name: str) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, name: "yes"}
