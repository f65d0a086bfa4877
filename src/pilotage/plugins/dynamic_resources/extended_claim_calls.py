"""The claim that serves a pod's extended resources: created by the scheduler, named in the pod's status, deleted again.

It belongs to one pod, and nobody else writes to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, Seen, is_not_found
from pilotage.model import KINDS, Pod
from pilotage.model.resource import ResourceClaim
from pilotage.plugins.dynamic_resources.claim_update import FINALIZER, read_claim, write_claim
from pilotage.plugins.dynamic_resources.extended_claim import ContainerRequest

_CLAIMS: Final = KINDS["resourceclaims"]
_STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


class ClaimCreation(ApiCall):
    """Create the claim, without an allocation."""

    __slots__ = ("_key", "claim")

    kind: ClassVar[str] = "claim_creation"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.BINDING

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim = claim
        """As it is in memory, and as the server has it after the call."""
        # The server gives it another UID; the call stays the same.
        self._key = claim.uid

    @property
    def object_key(self) -> str:
        return self._key

    async def perform(self, writer: ApiWriter) -> None:
        metadata = self.claim.metadata
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": metadata.generate_name,
                "annotations": metadata.annotations,
                "ownerReferences": msgspec.to_builtins(metadata.owner_references),
            },
            "spec": msgspec.to_builtins(self.claim.spec),
        }
        answer = await writer.create(_CLAIMS, metadata.namespace, msgspec.json.encode(body))
        self.claim = _CLAIMS.decode(answer)


class ClaimDeletion(ApiCall):
    """Delete the claim; its finalizer goes first."""

    __slots__ = ("_claim",)

    kind: ClassVar[str] = "claim_deletion"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.DELETION
    retries_conflicts: ClassVar[bool] = True

    def __init__(self, claim: ResourceClaim) -> None:
        self._claim = claim

    @property
    def object_key(self) -> str:
        return self._claim.uid

    def rebase(self, obj: Any) -> None:
        self._claim = obj

    async def perform(self, writer: ApiWriter) -> None:
        claim = self._claim
        try:
            if FINALIZER in claim.metadata.finalizers:
                kept = [name for name in claim.metadata.finalizers if name != FINALIZER]
                await write_claim(writer, claim, {"metadata": {"finalizers": kept}})
            options = msgspec.json.encode({"preconditions": {"uid": claim.uid}})
            await writer.delete(_CLAIMS, claim.namespace, claim.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise

    async def look(self, writer: ApiWriter) -> Seen:
        found = await read_claim(writer, self._claim)
        if found is None:
            return Seen(True)
        self._claim = found
        return Seen(False, found)


class ExtendedClaimStatus(ApiCall):
    """Tell in the pod's status which claim serves its extended resources: a field that nobody else writes."""

    __slots__ = ("_claim", "_pod", "_requests")

    kind: ClassVar[str] = "extended_claim_status"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.BINDING
    is_repeatable: ClassVar[bool] = True
    retries_conflicts: ClassVar[bool] = True

    def __init__(self, claim: ResourceClaim, pod: Pod, requests: Sequence[ContainerRequest]) -> None:
        self._claim = claim
        self._pod = pod
        self._requests = requests

    @property
    def object_key(self) -> str:
        # Not that of the pod: its conditions and its nomination are written beside this, neither instead of the other.
        return f"{self._pod.uid}/extended-claim"

    async def perform(self, writer: ApiWriter) -> None:
        mappings = [
            {"containerName": r.container, "resourceName": r.resource, "requestName": r.request} for r in self._requests
        ]
        status = {"resourceClaimName": self._claim.name, "requestMappings": mappings}
        patch = {"metadata": {"uid": self._pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        await writer.patch(
            KINDS["pods"],
            self._pod.namespace,
            self._pod.name,
            msgspec.json.encode(patch),
            content_type=_STRATEGIC_MERGE_PATCH,
            subresource="status",
        )
