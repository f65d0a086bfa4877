"""The claim for extended resources that devices serve: made by the scheduler itself, one per pod.

Each container that requests such a resource gets a request of its own. Init containers run before the others and use
the devices of those that come later; only what the neediest of them lacks is requested in addition. The claim is
created by the scheduler, named in the pod's status, and deleted again; nobody else writes to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, Seen, is_not_found
from pilotage.model import KINDS, Pod, PodSpec
from pilotage.model.meta import ObjectMeta, OwnerReference
from pilotage.model.pod_spec import Container
from pilotage.model.quantity import quantity_value
from pilotage.model.resource import DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec
from pilotage.plugins.dynamic_resources.claim_update import FINALIZER, read_claim, write_claim

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
NAME_IN_MEMORY = "<extended-resources>"


class ContainerRequest(Struct, frozen=True):
    """Which request of the claim serves which resource of which container."""

    container: str
    resource: str
    request: str
    count: int


def claim_in_memory(pod: Pod, uid: str) -> ResourceClaim:
    """A claim that the API server does not know (yet); what it requests depends on the node."""
    owner = OwnerReference("v1", "Pod", pod.name, pod.uid, controller=True, block_owner_deletion=True)
    metadata = ObjectMeta(
        name=NAME_IN_MEMORY,
        namespace=pod.namespace,
        uid=uid,
        annotations={ANNOTATION: "true"},
        owner_references=(owner,),
        generate_name=f"{pod.name}-extended-resources-",
    )
    return ResourceClaim(metadata=metadata)


def with_requests(
    claim: ResourceClaim, requests: Collection[ContainerRequest], classes: Mapping[str, str]
) -> ResourceClaim:
    """The claim as one node would have to serve it."""
    wanted = tuple(
        DeviceRequest(
            name=request.request,
            exactly=ExactDeviceRequest(device_class_name=classes[request.resource], count=request.count),
        )
        for request in sorted(requests, key=lambda request: request.request)
    )
    return ResourceClaim(metadata=claim.metadata, spec=ResourceClaimSpec(devices=DeviceClaim(requests=wanted)))


def container_requests(spec: PodSpec, resources: Collection[str]) -> list[ContainerRequest]:
    """What the containers request of these resources."""
    found: list[ContainerRequest] = []
    for resource in sorted(resources):
        found += _requests_of(spec, resource)
    return found


def _requests_of(spec: PodSpec, resource: str) -> list[ContainerRequest]:
    containers = [*spec.init_containers, *spec.containers]
    found: list[ContainerRequest] = []
    lacking: ContainerRequest | None = None
    later = 0
    # From the back: what later long-lived containers have, an init container can use before them.
    for place in reversed(range(len(containers))):
        container = containers[place]
        request = _request(container, place, resource)
        if request is None:
            continue
        if place >= len(spec.init_containers) or container.restart_policy == "Always":
            found.append(request)
            later += request.count
        elif request.count > later:
            missing = ContainerRequest(request.container, resource, request.request, request.count - later)
            if lacking is None or missing.count >= lacking.count:
                lacking = missing
    return found if lacking is None else [*found, lacking]


def _request(container: Container, place: int, resource: str) -> ContainerRequest | None:
    names = sorted(container.resources.requests)
    if resource not in names:
        return None
    count = quantity_value(container.resources.requests[resource])
    if count <= 0:
        return None
    return ContainerRequest(container.name, resource, f"container-{place}-request-{names.index(resource)}", count)


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
