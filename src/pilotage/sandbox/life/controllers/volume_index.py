"""Which volumes are free, which claims they name, and which claims wait: kept from changes, so that nothing is scanned.

A claim that found no volume waits here by its storage class, and is looked at again when a volume of that class becomes
free or the class itself changes. A claim and a volume that are bound to each other and say so need not be looked at at
all: every binding is several writes, and all of them are heard of.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pilotage.sandbox.storage.store import Key, Record

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"


BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


class _Reference(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(msgspec.Struct, rename="camel"):
    claim_ref: _Reference | None = None
    storage_class_name: str | None = None


class _Status(msgspec.Struct):
    phase: str | None = None


class _Volume(msgspec.Struct):
    spec: _VolumeSpec
    status: _Status | None = None


class _ClaimAnnotations(msgspec.Struct):
    bind_completed: str | None = msgspec.field(default=None, name=BIND_COMPLETED)


class _ClaimMetadata(msgspec.Struct):
    annotations: _ClaimAnnotations | None = None


class _ClaimSpec(msgspec.Struct, rename="camel"):
    volume_name: str | None = None


class _Claim(msgspec.Struct):
    metadata: _ClaimMetadata
    spec: _ClaimSpec
    status: _Status | None = None


_decode_volume = msgspec.json.Decoder(_Volume).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode


class VolumeIndex:
    """Volumes by the claim that they name or, if they name none, by class; waiting claims by class."""

    def __init__(self) -> None:
        self._group_of: dict[Key, Key | str] = {}
        self._members: dict[Key | str, dict[Key, None]] = {}
        self._waiting: dict[str, dict[Key, None]] = {}
        self._waits_for: dict[Key, str] = {}
        self._bound_volumes: dict[Key, str] = {}
        """Volumes that are Bound, with the uid of the claim that they name."""
        self._bound_claims: dict[Key, Key] = {}
        """All claims that are Bound, with the volume that they name."""

    def put(self, record: Record) -> None:
        volume = _decode_volume(record.body)
        spec, reference = volume.spec, volume.spec.claim_ref
        if reference is not None and volume.status is not None and volume.status.phase == "Bound":
            self._bound_volumes[record.key] = reference.uid
        else:
            self._bound_volumes.pop(record.key, None)
        claimed = Key(CLAIMS, reference.namespace, reference.name) if reference is not None else None
        group = claimed or spec.storage_class_name or ""
        if self._group_of.get(record.key) != group:
            self._ungroup(record.key)
            self._group_of[record.key] = group
            self._members.setdefault(group, {})[record.key] = None

    def put_claim(self, record: Record) -> None:
        claim = _decode_claim(record.body)
        annotations, name = claim.metadata.annotations, claim.spec.volume_name
        is_completed = annotations is not None and annotations.bind_completed is not None
        if name and is_completed and claim.status is not None and claim.status.phase == "Bound":
            self._bound_claims[record.key] = Key(VOLUMES, "", name)
        else:
            self._bound_claims.pop(record.key, None)

    def remove_claim(self, claim: Key) -> None:
        self._bound_claims.pop(claim, None)
        self.settle(claim)

    def is_settled(self, claim: Key, uid: str) -> bool:
        """Whether the claim with this uid and the volume that it names are bound to each other, and say so."""
        volume = self._bound_claims.get(claim)
        return volume is not None and self._group_of.get(volume) == claim and self._bound_volumes.get(volume) == uid

    def remove(self, volume: Key) -> None:
        self._bound_volumes.pop(volume, None)
        self._ungroup(volume)

    def _ungroup(self, volume: Key) -> None:
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
