"""Requests of claims, prepared for the search: with their device class, and all alternatives alike.

Claims made from one template differ in nothing but their names: they share their `ClaimRequests`, prepared once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

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
_KEPT_REQUESTS = 256
_encode = msgspec.json.Encoder().encode
ClassLookup = Callable[[str], DeviceClass | None]


class PreparedRequest(msgspec.Struct, frozen=True, eq=False):
    """One request, or one alternative of a request that lists several."""

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


Requests = tuple[tuple[PreparedRequest, ...], ...]
"""The alternatives of each request; a plain request has just one."""


class ClaimRequests(msgspec.Struct, frozen=True, eq=False):
    """What a claim asks for: everything that an answer depends on besides devices and nodes."""

    requests: Requests
    least: int | None
    """How many devices it takes at least; None if that depends on how many a node has."""

    def has_current(self, classes: ClassLookup) -> bool:
        """Are the device classes still the same?"""
        for alternatives in self.requests:
            for wanted in alternatives:
                if classes(wanted.device_class.name) is not wanted.device_class:
                    return False
        return True


class PreparedClaim(msgspec.Struct, frozen=True, eq=False):
    """A claim with what it asks for."""

    claim: ResourceClaim
    claim_requests: ClaimRequests

    @property
    def requests(self) -> Requests:
        return self.claim_requests.requests

    def where(self, wanted: PreparedRequest) -> str:
        """How messages name a request of the claim."""
        return f"claim {self.claim.key}, request {wanted.alternative or wanted.request}"


class MissingClass(Exception):
    """A request for a class that is not there (yet)."""


class ClaimRequestsCache:
    """What was requested lately, by what the claims say."""

    def __init__(self) -> None:
        self._known: dict[bytes, ClaimRequests] = {}

    def prepare(self, claim: ResourceClaim, classes: ClassLookup) -> PreparedClaim:
        """MissingClass for the first class that is not there."""
        # What a claim says can be a megabyte.
        key = blake2b(_encode(claim.spec.devices), digest_size=16).digest()
        claim_requests = self._known.get(key)
        if claim_requests is None or not claim_requests.has_current(classes):
            if len(self._known) >= _KEPT_REQUESTS:
                self._known.clear()
            asked = claim.spec.devices.requests
            requests = tuple(tuple(_alternatives(claim, request, classes)) for request in asked)
            claim_requests = self._known[key] = ClaimRequests(requests, _least(requests))
        return PreparedClaim(claim, claim_requests)


def _least(requests: Requests) -> int | None:
    if any(wanted.wants_all for alternatives in requests for wanted in alternatives):
        return None
    return sum(min(wanted.count for wanted in alternatives) for alternatives in requests)


def _alternatives(claim: ResourceClaim, request: DeviceRequest, classes: ClassLookup) -> Iterator[PreparedRequest]:
    if request.exactly is not None:
        yield _wanted(request.name, "", request.exactly, classes)
    elif request.first_available:
        for alternative in request.first_available:
            yield _wanted(request.name, alternative.name, alternative, classes)
    else:
        raise MissingClass(f"resource claim {claim.key}, request {request.name}: unknown request type")


def _wanted(
    request: str, alternative: str, exact: ExactDeviceRequest | DeviceSubRequest, classes: ClassLookup
) -> PreparedRequest:
    name = exact.device_class_name
    device_class = classes(name)
    if device_class is None:
        label = f"{request}/{alternative}" if alternative else request
        raise MissingClass(f"request {label}: device class {name} does not exist")
    return PreparedRequest(
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
