"""The last step before a pod with devices is bound: wait until drivers have made them ready.

Only devices with binding conditions are waited for. The pod gets an event, so that its owner sees what it waits for,
and the outcome is counted per driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.api import Handle
from pilotage.model import Pod
from pilotage.model.resource import ResourceClaim
from pilotage.plugins.dynamic_resources.binding_conditions import (
    BindingFailed,
    BindingTimedOut,
    drivers_to_wait_for,
    is_overdue,
    is_ready,
)
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.errors import AllocationError

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
