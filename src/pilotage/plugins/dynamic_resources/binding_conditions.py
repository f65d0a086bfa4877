"""Devices that must be made ready before a pod can be bound, such as those attached over a fabric.

A device names conditions that must all become true, and conditions any of which means that it failed; the driver
reports them in the status of the claim.
"""

from __future__ import annotations

from pilotage.clock import parse_rfc3339
from pilotage.model.meta import TimedCondition
from pilotage.model.resource import AllocatedDeviceStatus, DeviceAllocationResult, ResourceClaim


class BindingFailed(Exception):
    """A device cannot be made ready."""


class BindingTimedOut(BindingFailed):
    """A device was not made ready in time."""


def drivers_to_wait_for(claim: ResourceClaim) -> list[str]:
    """The drivers of allocated devices that wait for conditions."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return [result.driver for result in results if result.binding_conditions]


def is_ready(claim: ResourceClaim) -> bool:
    """All devices of the claim are ready; BindingFailed if one never will be."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return all(_device_is_ready(claim, result) for result in results if result.binding_conditions)


def is_overdue(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Have the devices been waited for too long?"""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    return parse_rfc3339(allocation.allocation_timestamp) + timeout_seconds < now


def _device_is_ready(claim: ResourceClaim, result: DeviceAllocationResult) -> bool:
    reported = next((status for status in claim.status.devices if _is_about(status, result)), None)
    if reported is None:
        return False
    true = {condition.type: condition for condition in reported.conditions if condition.status == "True"}
    for name in result.binding_failure_conditions:
        if name in true:
            raise BindingFailed(_failure_text(claim, true[name]))
    return all(name in true for name in result.binding_conditions)


def _is_about(status: AllocatedDeviceStatus, result: DeviceAllocationResult) -> bool:
    return (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device)


def _failure_text(claim: ResourceClaim, condition: TimedCondition) -> str:
    return f"device binding failed: claim={claim.name}, reason={condition.reason}, message={condition.message}"
