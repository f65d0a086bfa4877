"""Constraints of a claim: devices that must agree in an attribute, or must all differ in it.

A constraint is asked to take one device after another, and to let go of them in reverse order when the search goes
back. A device without the attribute is never taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pilotage.model.resource import Device, DeviceAttribute, DeviceClaim, DeviceConstraint
from pilotage.plugins.dynamic_resources.device_ids import DeviceID
from pilotage.plugins.dynamic_resources.errors import AllocationError

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
