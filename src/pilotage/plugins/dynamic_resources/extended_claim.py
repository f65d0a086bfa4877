"""The claim for extended resources that devices serve: made by the scheduler itself, one per pod.

Each container that requests such a resource gets a request of its own. Init containers run before the others and use
the devices of those that come later; only what the neediest of them lacks is requested in addition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from pilotage.model import Pod, PodSpec
from pilotage.model.meta import ObjectMeta, OwnerReference
from pilotage.model.pod_spec import Container
from pilotage.model.quantity import quantity_value
from pilotage.model.resource import DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec

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
