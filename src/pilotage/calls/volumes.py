"""Bind storage: reserve a volume for a claim, or say for which node a claim's volume is to be made.

Both are patches of what changes and nothing else, on condition that the object is still the one that was decided about.
The rest is done by the cluster's volume controller.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance
from pilotage.model import KINDS
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_MERGE_PATCH = "application/merge-patch+json"


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_written = msgspec.json.Decoder(_Written)


class VolumeReservation(ApiCall):
    """PATCH a PersistentVolume with the claim that it is reserved for."""

    __slots__ = ("_volume", "written_version")

    kind: ClassVar[str] = "volume_reservation"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[Relevance] = Relevance.BINDING

    def __init__(self, volume: PersistentVolume) -> None:
        """`volume` as it shall be: its claimRef and annotations are written."""
        self._volume = volume
        self.written_version = ""
        """The resource version that the API server gave to the result; "" until then."""

    @property
    def object_key(self) -> str:
        return self._volume.uid

    async def perform(self, writer: ApiWriter) -> None:
        volume = self._volume
        patch = {
            "metadata": _identity(volume) | {"annotations": dict(volume.annotations)},
            "spec": {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)},
        }
        kind = KINDS["persistentvolumes"]
        answer = await writer.patch(kind, "", volume.name, msgspec.json.encode(patch), content_type=_MERGE_PATCH)
        self.written_version = _written.decode(answer).metadata.resource_version


class ProvisioningOrder(ApiCall):
    """PATCH a PersistentVolumeClaim with the node that its volume is to be made for."""

    __slots__ = ("_claim", "_node_name", "written_version")

    kind: ClassVar[str] = "provisioning_order"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[Relevance] = Relevance.BINDING

    def __init__(self, claim: PersistentVolumeClaim, node_name: str) -> None:
        self._claim = claim
        self._node_name = node_name
        self.written_version = ""
        """The resource version that the API server gave to the result; "" until then."""

    @property
    def object_key(self) -> str:
        return self._claim.uid

    async def perform(self, writer: ApiWriter) -> None:
        claim = self._claim
        patch = {"metadata": _identity(claim) | {"annotations": {SELECTED_NODE: self._node_name}}}
        kind, body = KINDS["persistentvolumeclaims"], msgspec.json.encode(patch)
        answer = await writer.patch(kind, claim.namespace, claim.name, body, content_type=_MERGE_PATCH)
        self.written_version = _written.decode(answer).metadata.resource_version


def _identity(obj: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
    """Makes the patch fail for an object that was changed or made anew in the meantime."""
    return {"uid": obj.uid, "resourceVersion": obj.resource_version}
