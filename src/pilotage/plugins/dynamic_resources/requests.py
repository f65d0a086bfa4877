"""Requests and constraints of claims, prepared for the search: with their device class, and all alternatives alike.

Claims made from one template differ in nothing but their names: they share their `ClaimRequests`, prepared once.

Constraints demand that devices agree in an attribute, or all differ in it. One is asked to take one device after
another, and to let go of them in reverse order when the search goes back. A device without the attribute is never
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from pilotage.model.resource import (
    CapacityRequirements,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from pilotage.plugins.dynamic_resources.devices import DeviceID


class AllocationError(Exception):
    """A claim that cannot be dealt with: the whole attempt ends, and the pod is retried after a while."""


class NodeAllocationError(Exception):
    """What is wrong concerns one node only, which is then rejected."""


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


AttributeValue: TypeAlias = tuple[str, object]
"""The kind of an attribute and its value: values of different kinds are never equal."""


class AttributeConstraint:
    """Devices taken so far, by the value of the attribute."""

    __slots__ = ("_attribute", "_requests", "_values", "_wants_equal")

    def __init__(self, attribute: str, requests: Iterable[str], *, wants_equal: bool) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._wants_equal = wants_equal
        self._values: list[AttributeValue] = []

    def add(self, request: str, sub_request: str, device: Device, device_id: DeviceID) -> bool:
        """Take a device for a request; False if that would break the constraint."""
        if not self._concerns(request, sub_request):
            return True
        value = attribute_value(device, device_id, self._attribute)
        if value is None:
            return False
        if self._values and (value in self._values) != self._wants_equal:
            return False
        self._values.append(value)
        return True

    def remove(self, request: str, sub_request: str) -> None:
        """Let go of the device that was taken last."""
        if self._concerns(request, sub_request):
            self._values.pop()

    @property
    def state(self) -> frozenset[AttributeValue]:
        """What it depends on whether further devices can be taken."""
        return frozenset(self._values)

    def value_of(self, device: Device, device_id: DeviceID) -> AttributeValue | None:
        """All that the constraint sees of a device."""
        return attribute_value(device, device_id, self._attribute)

    def _concerns(self, request: str, sub_request: str) -> bool:
        requests = self._requests
        return not requests or request in requests or (bool(sub_request) and f"{request}/{sub_request}" in requests)


def constraints_of(claim_key: str, devices: DeviceClaim) -> list[AttributeConstraint]:
    return [_constraint(claim_key, place, constraint) for place, constraint in enumerate(devices.constraints)]


def _constraint(claim_key: str, place: int, constraint: DeviceConstraint) -> AttributeConstraint:
    if constraint.match_attribute is not None:
        return AttributeConstraint(constraint.match_attribute, constraint.requests, wants_equal=True)
    if constraint.distinct_attribute is not None:
        return AttributeConstraint(constraint.distinct_attribute, constraint.requests, wants_equal=False)
    raise AllocationError(f"claim {claim_key}, constraint #{place}: empty constraint (unsupported constraint type?)")


def attribute_value(device: Device, device_id: DeviceID, name: str) -> AttributeValue | None:
    """The value of an attribute by its full name; the driver's own attributes need no domain."""
    attribute = device.attributes.get(name)
    if attribute is None:
        domain, _, identifier = name.partition("/")
        if domain != device_id.driver:
            return None
        attribute = device.attributes.get(identifier)
    return None if attribute is None else _value(attribute)


def _value(attribute: DeviceAttribute) -> AttributeValue | None:
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None
