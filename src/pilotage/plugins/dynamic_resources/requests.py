"""Requests of claims, prepared for the search: with their device class, and all alternatives alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from pilotage.model.resource import (
    CapacityRequirements,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from pilotage.plugins.dynamic_resources.errors import AllocationError

MAX_RESULTS = 32
ClassLookup = Callable[[str], DeviceClass | None]


class Wanted(msgspec.Struct, frozen=True, eq=False):
    """One request, or one alternative of a request that lists several."""

    claim_key: str
    request: str
    alternative: str
    """"" if the request has no alternatives."""
    device_class: DeviceClass
    selectors: tuple[DeviceSelector, ...]
    wants_all: bool
    count: int
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: CapacityRequirements | None

    @property
    def label(self) -> str:
        """What an allocation says it is for."""
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    @property
    def where(self) -> str:
        """How messages name the request."""
        return f"claim {self.claim_key}, request {self.alternative or self.request}"


class PreparedClaim(msgspec.Struct, frozen=True, eq=False):
    """A claim with the alternatives of each of its requests; a plain request has just one."""

    claim: ResourceClaim
    requests: tuple[tuple[Wanted, ...], ...]


class MissingClass(Exception):
    """A request for a class that is not there (yet)."""


def prepare(claim: ResourceClaim, classes: ClassLookup) -> PreparedClaim:
    """MissingClass for the first class that is not there."""
    requests = claim.spec.devices.requests
    return PreparedClaim(claim, tuple(tuple(_alternatives(claim, request, classes)) for request in requests))


def _alternatives(claim: ResourceClaim, request: DeviceRequest, classes: ClassLookup) -> Iterator[Wanted]:
    if request.exactly is not None:
        yield _wanted(claim, request.name, "", request.exactly, classes)
    elif request.first_available:
        for alternative in request.first_available:
            yield _wanted(claim, request.name, alternative.name, alternative, classes)
    else:
        raise MissingClass(f"resource claim {claim.key}, request {request.name}: unknown request type")


def _wanted(
    claim: ResourceClaim,
    request: str,
    alternative: str,
    exact: ExactDeviceRequest | DeviceSubRequest,
    classes: ClassLookup,
) -> Wanted:
    name = exact.device_class_name
    device_class = classes(name)
    if device_class is None:
        label = f"{request}/{alternative}" if alternative else request
        raise MissingClass(f"request {label}: device class {name} does not exist")
    return Wanted(
        claim.key,
        request,
        alternative,
        device_class,
        exact.selectors,
        exact.allocation_mode == "All",
        exact.count,
        isinstance(exact, ExactDeviceRequest) and bool(exact.admin_access),
        exact.tolerations,
        exact.capacity,
    )


def expressions(selectors: Sequence[DeviceSelector], where: str) -> Iterator[str]:
    """The CEL expressions of selectors; AllocationError for a selector of a kind that is not known."""
    for place, selector in enumerate(selectors):
        if selector.cel is None:
            raise AllocationError(f"{where}, selector #{place}: CEL expression empty (unsupported selector type?)")
        yield selector.cel.expression
