"""Devices that must be made ready before a pod can be bound, such as those attached over a fabric.

A device names conditions that must all become true, and conditions any of which means that it failed; the driver
reports them in the status of the claim. Waiting for them is the last step before the pod is bound: it gets an event, so
that its owner sees what it waits for, and the outcome is counted per driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.api import Handle
from pilotage.clock import parse_rfc3339
from pilotage.model import Pod
from pilotage.model.meta import TimedCondition
from pilotage.model.resource import AllocatedDeviceStatus, DeviceAllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.requests import AllocationError


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


_LOOK_EVERY_SECONDS = 5.0
_OUTCOMES = "scheduler_dra_bindingconditions_allocations_total"
_DURATIONS = "scheduler_dra_bindingconditions_wait_duration_seconds"


class Readiness:
    """Waits for the claims of one pod."""

    def __init__(self, handle: Handle, timeout_seconds: float, pod: Pod) -> None:
        self._handle = handle
        self._timeout_seconds = timeout_seconds
        self._pod = pod

    async def wait(self, claims: Sequence[ResourceClaim]) -> None:
        """Returns when all devices are ready; BindingFailed if one never will be, or not in time."""
        drivers = sorted({driver for claim in claims for driver in drivers_to_wait_for(claim)})
        if not drivers:
            return
        note = f"waiting for binding conditions for device on node {self._pod.node_name}"
        self._handle.record_event(self._pod, "Normal", "BindingConditionsPending", "Scheduling", note)
        started, outcome = self._handle.clock.monotonic(), "error"
        try:
            await self._all_ready([claim.key for claim in claims])
            outcome = "success"
        except BindingTimedOut:
            outcome = "timeout"
            raise
        except BindingFailed:
            outcome = "failure"
            raise
        finally:
            self._count(drivers, outcome, self._handle.clock.monotonic() - started)

    def _count(self, drivers: Sequence[str], outcome: str, seconds: float) -> None:
        profile = self._pod.spec.scheduler_name
        for driver in drivers:
            self._handle.count(_OUTCOMES, profile, driver, outcome)
            self._handle.observe(_DURATIONS, seconds, profile, driver, outcome)

    async def _all_ready(self, keys: Sequence[str]) -> None:
        for key in keys:
            while not self._is_ready(key):
                await self._handle.clock.sleep(_LOOK_EVERY_SECONDS)

    def _is_ready(self, key: str) -> bool:
        claim = self._handle.index(ClaimBook).get(key)
        if claim is None:
            raise AllocationError(f"claim {key} got deleted in the meantime")
        if is_ready(claim):
            return True
        if is_overdue(claim, self._handle.clock.time(), self._timeout_seconds):
            raise BindingTimedOut(f"device binding timeout: claim={claim.name}")
        return False
