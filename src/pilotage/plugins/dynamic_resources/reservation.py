"""From a decision to written claims: reserve in memory, write before the pod is bound, take back on failure."""

from __future__ import annotations

from functools import cached_property

from pilotage.api import Handle
from pilotage.api.calls import is_conflict
from pilotage.clock import rfc3339
from pilotage.model import Node, Pod
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.args import DynamicResourcesArgs
from pilotage.plugins.dynamic_resources.calls import (
    ClaimCreation,
    ClaimDeletion,
    ClaimRelease,
    ClaimReservation,
    ExtendedClaimStatus,
)
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.errors import AllocationError
from pilotage.plugins.dynamic_resources.extended_claim import NAME_IN_MEMORY, ContainerRequest, container_requests
from pilotage.plugins.dynamic_resources.readiness import Readiness
from pilotage.plugins.dynamic_resources.results import allocation_of
from pilotage.plugins.dynamic_resources.state import PodClaims, Reserved

_TRIES = 5
_RETRY_SECONDS = 0.01
_SEEN_WITHIN_SECONDS = 120.0
_LOOK_EVERY_SECONDS = 0.1
_CREATIONS = "dynamic_resource_allocation_resourceclaim_creates_total"


class Reservations:
    """Reserve, PreBind and Unreserve of one profile."""

    def __init__(self, handle: Handle, args: DynamicResourcesArgs) -> None:
        self._handle = handle
        self._args = args

    @cached_property
    def _book(self) -> ClaimBook:
        return self._handle.index(ClaimBook)

    # --- in memory ---------------------------------------------------------------------------------------------

    def reserve(self, claims: PodClaims, pod: Pod, node: Node) -> None:
        """Take the devices that the node gives; from now on nobody else gets them."""
        outcome = claims.outcome(node.name)
        if outcome is None:
            raise AllocationError("claim allocation not found for node")
        for prepared, picks in zip(outcome.claims, outcome.picks, strict=True):
            allocation = allocation_of(prepared, picks, node, self._handle.rng)
            self._book.reserve(prepared.claim, allocation, pod.uid)
            claims.reserved.append(Reserved(prepared.claim, allocation))

    def unreserve(self, claims: PodClaims, pod: Pod) -> None:
        """Give everything back: what was only planned, and what was written already."""
        for reserved in claims.reserved:
            self._book.unreserve(reserved.claim.uid, pod.uid)
        claims.reserved.clear()
        for claim in claims.claims:
            current = self._book.get(claim.key)
            if current is not None and current.uid == claim.uid and is_reserved_for(current, pod):
                self._handle.submit(ClaimRelease(current, pod))
        if claims.created is not None:
            self._handle.submit(ClaimDeletion(claims.created, pod))
            claims.created = None

    # --- in the API --------------------------------------------------------------------------------------------

    async def write(self, claims: PodClaims, pod: Pod) -> None:
        """Reserve all claims for the pod and wait until their devices are ready; raises what went wrong."""
        planned = {reserved.claim.uid: reserved for reserved in claims.reserved}
        written = [await self._write_one(claim, planned.get(claim.uid), pod) for claim in claims.claims]
        for reserved in claims.reserved:
            if reserved.claim.name == NAME_IN_MEMORY:
                written.append(await self._write_extended(claims, reserved, pod))
        for reserved in claims.reserved:
            self._book.settle(reserved.claim.uid)
        if self._args.binding_timeout is not None:
            await Readiness(self._handle, self._args.binding_timeout, pod).wait(written)

    async def _write_one(self, claim: ResourceClaim, planned: Reserved | None, pod: Pod) -> ResourceClaim:
        allocation = None if planned is None else planned.allocation
        for attempt in range(1, _TRIES + 1):
            current = self._usable(claim, allocation)
            if is_reserved_for(current, pod):
                return current
            call = ClaimReservation(current, pod, allocation, rfc3339(self._handle.clock.time()))
            try:
                await self._handle.perform(call)
            except Exception as error:
                if not is_conflict(error) or attempt == _TRIES:
                    raise
                # Somebody was faster; the watch tells what the claim looks like now.
                await self._handle.clock.sleep(_RETRY_SECONDS * 2**attempt)
                continue
            self._book.assume(call.claim)
            return call.claim
        raise AssertionError("the last try returns or raises")

    def _usable(self, claim: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
        """The claim as it is now, if it can still be used as planned."""
        current = self._book.get(claim.key)
        if current is None or current.uid != claim.uid or current.metadata.deletion_timestamp is not None:
            raise AllocationError(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None and current.status.allocation is not None:
            raise AllocationError(f"claim {claim.key} got allocated elsewhere in the meantime")
        if allocation is None and current.status.allocation is None:
            raise AllocationError(f"claim {claim.key} got deallocated elsewhere in the meantime")
        return current

    async def _write_extended(self, claims: PodClaims, reserved: Reserved, pod: Pod) -> ResourceClaim:
        creation = ClaimCreation(reserved.claim, pod)
        try:
            await self._handle.perform(creation)
        except Exception:
            self._handle.count(_CREATIONS, "failure", "false", "", "Pod")
            raise
        self._handle.count(_CREATIONS, "success", "false", "", "Pod")
        claims.created = creation.claim
        reservation = ClaimReservation(creation.claim, pod, reserved.allocation, rfc3339(self._handle.clock.time()))
        await self._handle.perform(reservation)
        claims.created = reservation.claim
        await self._be_seen(reservation.claim)
        await self._handle.perform(ExtendedClaimStatus(reservation.claim, pod, _served(pod, reserved.claim)))
        return reservation.claim

    async def _be_seen(self, claim: ResourceClaim) -> None:
        """Wait until the watch brings the new claim: until then only the reservation keeps its devices."""
        end = self._handle.clock.monotonic() + _SEEN_WITHIN_SECONDS
        while True:
            known = self._book.get(claim.key)
            if known is not None and known.uid == claim.uid:
                self._book.assume(claim)
                return
            if self._handle.clock.monotonic() > end:
                raise AllocationError(f"claim {claim.key} was created, but the watch does not show it")
            await self._handle.clock.sleep(_LOOK_EVERY_SECONDS)


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for)


def _served(pod: Pod, claim: ResourceClaim) -> list[ContainerRequest]:
    """Which requests of the claim serve which containers."""
    names = {request.name for request in claim.spec.devices.requests}
    wanted = {
        name for container in (*pod.spec.init_containers, *pod.spec.containers) for name in container.resources.requests
    }
    return [request for request in container_requests(pod.spec, wanted) if request.request in names]
