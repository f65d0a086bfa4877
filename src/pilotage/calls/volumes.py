"""Bind storage: reserve a volume for a claim, or say for which node a claim's volume is to be made.

Both are patches of what changes and nothing else, on condition that the object is still the one that was decided about.
The rest is done by the cluster's volume controller.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, ObjectChanged, Relevance, Seen
from pilotage.calls.pod_status import version_of
from pilotage.model import KINDS
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_MERGE_PATCH = "application/merge-patch+json"


class VolumeReservation(ApiCall):
    """PATCH a PersistentVolume with the claim that it is reserved for."""

    __slots__ = ("_volume", "written_version")

    kind: ClassVar[str] = "volume_reservation"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.BINDING

    def __init__(self, volume: PersistentVolume) -> None:
        """`volume` as it shall be: its claimRef and annotations are written."""
        self._volume = volume
        self.written_version = ""
        """The resource version that the API server gave to the result; "" until then."""

    @property
    def object_key(self) -> str:
        return self._volume.uid

    async def perform(self, writer: ApiWriter) -> str | None:
        volume = self._volume
        patch = {
            "metadata": _identity(volume) | {"annotations": dict(volume.annotations)},
            "spec": {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)},
        }
        kind = KINDS["persistentvolumes"]
        answer = await writer.patch(kind, "", volume.name, msgspec.json.encode(patch), content_type=_MERGE_PATCH)
        self.written_version = version_of(answer) or ""
        return self.written_version or None

    async def look(self, writer: ApiWriter) -> Seen:
        kind, wanted = KINDS["persistentvolumes"], self._volume.spec.claim_ref
        found: PersistentVolume = kind.decode(await writer.get(kind, "", self._volume.name))
        reserved = found.spec.claim_ref
        if found.uid == self._volume.uid and wanted is not None and reserved is not None and reserved.uid == wanted.uid:
            self.written_version = found.resource_version
            return Seen(True)
        return _unchanged(self._volume, found)


class ProvisioningOrder(ApiCall):
    """PATCH a PersistentVolumeClaim with the node that its volume is to be made for."""

    __slots__ = ("_claim", "_node_name", "written_version")

    kind: ClassVar[str] = "provisioning_order"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.BINDING
    joins: ClassVar[bool] = True

    def __init__(self, claim: PersistentVolumeClaim, node_name: str) -> None:
        self._claim = claim
        self._node_name = node_name
        self.written_version = ""
        """The resource version that the API server gave to the result; "" until then."""

    @property
    def object_key(self) -> str:
        return self._claim.uid

    def still_wants(self, part: ApiCall) -> bool:
        """Pods that share a claim may share the order; a volume is made for one node."""
        return isinstance(part, ProvisioningOrder) and part._node_name == self._node_name

    def admits(self, newer: ApiCall) -> bool:
        return self.still_wants(newer)

    async def perform(self, writer: ApiWriter) -> str | None:
        claim = self._claim
        patch = {"metadata": _identity(claim) | {"annotations": {SELECTED_NODE: self._node_name}}}
        kind, body = KINDS["persistentvolumeclaims"], msgspec.json.encode(patch)
        answer = await writer.patch(kind, claim.namespace, claim.name, body, content_type=_MERGE_PATCH)
        self.written_version = version_of(answer) or ""
        return self.written_version or None

    async def look(self, writer: ApiWriter) -> Seen:
        kind, claim = KINDS["persistentvolumeclaims"], self._claim
        found: PersistentVolumeClaim = kind.decode(await writer.get(kind, claim.namespace, claim.name))
        if found.uid == claim.uid and found.annotations.get(SELECTED_NODE) == self._node_name:
            self.written_version = found.resource_version
            return Seen(True)
        return _unchanged(claim, found)


def _unchanged(
    known: PersistentVolume | PersistentVolumeClaim, found: PersistentVolume | PersistentVolumeClaim
) -> Seen:
    """The patch is bound to one version: for any other one it would be rejected."""
    if (found.uid, found.resource_version) != (known.uid, known.resource_version):
        raise ObjectChanged(f"{type(known).__name__} {known.key} was changed by another client meanwhile")
    return Seen(False)


def _identity(obj: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
    """Makes the patch fail for an object that was changed or made anew in the meantime."""
    return {"uid": obj.uid, "resourceVersion": obj.resource_version}
