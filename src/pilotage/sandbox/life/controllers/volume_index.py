"""Which volumes are free, which claims they name, and which claims wait: kept from changes, so that nobody scans.

A claim that found no volume waits here by its storage class, and is looked at again when a volume of that class becomes
free or the class itself changes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pilotage.sandbox.storage.store import Key, Record

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"


class _Reference(msgspec.Struct):
    namespace: str = ""
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    claim_ref: _Reference | None = None
    storage_class_name: str | None = None


class _Volume(msgspec.Struct):
    spec: _Spec


_decode = msgspec.json.Decoder(_Volume).decode


class VolumeIndex:
    """Volumes by the claim that they name or, if they name none, by class; waiting claims by class."""

    def __init__(self) -> None:
        self._group_of: dict[Key, Key | str] = {}
        self._members: dict[Key | str, dict[Key, None]] = {}
        self._waiting: dict[str, dict[Key, None]] = {}
        self._waits_for: dict[Key, str] = {}

    def put(self, record: Record) -> None:
        spec = _decode(record.body).spec
        reference = spec.claim_ref
        claimed = Key(CLAIMS, reference.namespace, reference.name) if reference is not None else None
        group = claimed or spec.storage_class_name or ""
        if self._group_of.get(record.key) != group:
            self.remove(record.key)
            self._group_of[record.key] = group
            self._members.setdefault(group, {})[record.key] = None

    def remove(self, volume: Key) -> None:
        group = self._group_of.pop(volume, None)
        if group is not None:
            members = self._members[group]
            del members[volume]
            if not members:
                del self._members[group]

    def claim_of(self, volume: Key) -> Key | None:
        """The claim that the volume names, whether or not it exists."""
        group = self._group_of.get(volume)
        return group if isinstance(group, Key) else None

    def volumes_of(self, claim: Key) -> list[Key]:
        """The volumes that name this claim."""
        return list(self._members.get(claim, ()))

    def free_volumes(self, storage_class: str) -> list[Key]:
        return list(self._members.get(storage_class, ()))

    def free_class_of(self, volume: Key) -> str | None:
        """The class of a volume that names no claim; None if it names one."""
        group = self._group_of.get(volume)
        return None if isinstance(group, Key) else group

    def wait(self, claim: Key, storage_class: str) -> None:
        self.settle(claim)
        self._waits_for[claim] = storage_class
        self._waiting.setdefault(storage_class, {})[claim] = None

    def settle(self, claim: Key) -> None:
        """The claim waits no longer."""
        storage_class = self._waits_for.pop(claim, None)
        if storage_class is not None:
            del self._waiting[storage_class][claim]
            if not self._waiting[storage_class]:
                del self._waiting[storage_class]

    def waiting(self, storage_class: str) -> Iterable[Key]:
        return list(self._waiting.get(storage_class, ()))
