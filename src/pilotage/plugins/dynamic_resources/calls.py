"""What is written to claims: reservations, releases, deallocations, and the claims for extended resources.

Everything is a patch that carries the claim's version, so that the server refuses it if somebody else was faster, and
that names only what changes, so that fields which this scheduler does not know are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_not_found
from pilotage.model import KINDS, Pod
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.extended_claim import ContainerRequest

FINALIZER = "resource.kubernetes.io/delete-protection"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
_CLAIMS = KINDS["resourceclaims"]


class ClaimCall(ApiCall):
    """A write to one claim on behalf of one pod: the calls of two pods never replace each other."""

    __slots__ = ("_key", "claim", "pod")

    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.BINDING
    is_repeatable: ClassVar[bool] = True
    """At worst the second try finds another version of the claim, and is refused."""

    def __init__(self, claim: ResourceClaim, pod: Pod) -> None:
        self.claim = claim
        """The claim as it was before, and as the server has it after the call."""
        self.pod = pod
        # Creating a claim gives it another UID; the call stays the same.
        self._key = f"{claim.uid}/{pod.uid}"

    @property
    def object_key(self) -> str:
        return self._key

    async def _patch(self, writer: ApiWriter, patch: dict[str, Any], subresource: str = "") -> None:
        claim = self.claim
        body = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": claim.resource_version}}
        answer = await writer.patch(
            _CLAIMS,
            claim.namespace,
            claim.name,
            msgspec.json.encode(body),
            content_type=_MERGE_PATCH,
            subresource=subresource,
        )
        self.claim = _CLAIMS.decode(answer)


class ClaimReservation(ClaimCall):
    """Reserve a claim for a pod, and write what it gets if that is not written yet."""

    __slots__ = ("_allocation", "_now")

    kind: ClassVar[str] = "claim_reservation"

    def __init__(self, claim: ResourceClaim, pod: Pod, allocation: AllocationResult | None, now: str) -> None:
        super().__init__(claim, pod)
        self._allocation = allocation
        self._now = now

    async def perform(self, writer: ApiWriter) -> None:
        finalizers = self.claim.metadata.finalizers
        if self._allocation is not None and FINALIZER not in finalizers:
            await self._patch(writer, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
        status: dict[str, Any] = {"reservedFor": [*map(_json, self.claim.status.reserved_for), _consumer(self.pod)]}
        allocation = self._allocation or self.claim.status.allocation
        if self._allocation is not None:
            status["allocation"] = {**_json(self._allocation), "allocationTimestamp": self._now}
        elif allocation is not None and allocation.allocation_timestamp is None:
            status["allocation"] = {"allocationTimestamp": self._now}
        await self._patch(writer, {"status": status}, subresource="status")


class ClaimRelease(ClaimCall):
    """Take back the reservation of a pod; what was allocated stays."""

    __slots__ = ()

    kind: ClassVar[str] = "claim_release"

    async def perform(self, writer: ApiWriter) -> None:
        patch = {
            "metadata": {"uid": self.claim.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": self.pod.uid}]},
        }
        await writer.patch(
            _CLAIMS,
            self.claim.namespace,
            self.claim.name,
            msgspec.json.encode(patch),
            content_type=_STRATEGIC_MERGE_PATCH,
            subresource="status",
        )


class ClaimDeallocation(ClaimCall):
    """Free the devices of a claim that nobody uses."""

    __slots__ = ()

    kind: ClassVar[str] = "claim_deallocation"

    async def perform(self, writer: ApiWriter) -> None:
        nothing = {"allocation": None, "reservedFor": None, "devices": None}
        await self._patch(writer, {"status": nothing}, subresource="status")


class ClaimDeletion(ClaimCall):
    """Delete a claim that the scheduler made itself; its finalizer goes first."""

    __slots__ = ()

    kind: ClassVar[str] = "claim_deletion"
    relevance: ClassVar[int] = Relevance.DELETION

    async def perform(self, writer: ApiWriter) -> None:
        try:
            finalizers = self.claim.metadata.finalizers
            if FINALIZER in finalizers:
                kept = [name for name in finalizers if name != FINALIZER]
                await self._patch(writer, {"metadata": {"finalizers": kept}})
            options = msgspec.json.encode({"preconditions": {"uid": self.claim.uid}})
            await writer.delete(_CLAIMS, self.claim.namespace, self.claim.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise


class ClaimCreation(ClaimCall):
    """Create the claim for the extended resources of a pod, without an allocation."""

    __slots__ = ()

    kind: ClassVar[str] = "claim_creation"
    is_repeatable: ClassVar[bool] = False

    async def perform(self, writer: ApiWriter) -> None:
        metadata = self.claim.metadata
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": metadata.generate_name,
                "annotations": metadata.annotations,
                "ownerReferences": [_json(owner) for owner in metadata.owner_references],
            },
            "spec": _json(self.claim.spec),
        }
        answer = await writer.create(_CLAIMS, metadata.namespace, msgspec.json.encode(body))
        self.claim = _CLAIMS.decode(answer)


class ExtendedClaimStatus(ClaimCall):
    """Tell in the pod's status which claim serves its extended resources."""

    __slots__ = ("_requests",)

    kind: ClassVar[str] = "extended_claim_status"

    def __init__(self, claim: ResourceClaim, pod: Pod, requests: Sequence[ContainerRequest]) -> None:
        super().__init__(claim, pod)
        self._requests = requests

    async def perform(self, writer: ApiWriter) -> None:
        mappings = [
            {"containerName": r.container, "resourceName": r.resource, "requestName": r.request} for r in self._requests
        ]
        status = {"resourceClaimName": self.claim.name, "requestMappings": mappings}
        patch = {"metadata": {"uid": self.pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        await writer.patch(
            KINDS["pods"],
            self.pod.namespace,
            self.pod.name,
            msgspec.json.encode(patch),
            content_type=_STRATEGIC_MERGE_PATCH,
            subresource="status",
        )


def _consumer(pod: Pod) -> dict[str, str]:
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}


def _json(struct: msgspec.Struct) -> dict[str, Any]:
    """A struct as JSON, without what is not set."""
    plain: dict[str, Any] = msgspec.to_builtins(struct)
    return plain
