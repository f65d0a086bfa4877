"""From a decision to written claims: reserve in memory, write before the pod is bound, take back on failure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from pilotage.api import Action, ClusterEvent, Handle, Resource
from pilotage.api.calls import Outcome
from pilotage.clock import rfc3339
from pilotage.model import Node, Pod
from pilotage.model.resource import (
    AllocationResult,
    DeviceAllocation,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    ResourceClaim,
)
from pilotage.model.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from pilotage.plugins.args import DynamicResourcesArgs
from pilotage.plugins.dynamic_resources.allocation import PodResourceClaims, Reserved
from pilotage.plugins.dynamic_resources.binding_conditions import Readiness, drivers_to_wait_for
from pilotage.plugins.dynamic_resources.capacity import written
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook, PendingAllocation
from pilotage.plugins.dynamic_resources.claim_update import Act, ClaimIntent, ClaimUpdate
from pilotage.plugins.dynamic_resources.claims import is_newer
from pilotage.plugins.dynamic_resources.devices import PoolDevice
from pilotage.plugins.dynamic_resources.extended_claim import (
    NAME_IN_MEMORY,
    ClaimCreation,
    ClaimDeletion,
    ContainerRequest,
    ExtendedClaimStatus,
    container_requests,
)
from pilotage.plugins.dynamic_resources.requests import AllocationError, PreparedClaim, PreparedRequest
from pilotage.plugins.dynamic_resources.search import Pick
from pilotage.rng import random_uid


def allocation_of(claim: PreparedClaim, picks: Sequence[Pick], node: Node, rng: random.Random) -> AllocationResult:
    """What a claim gets; shares of devices get an identity of their own."""
    results = tuple(_result(pick, rng) for pick in picks)
    return AllocationResult(
        devices=DeviceAllocation(results=results, config=tuple(_config(claim, picks))),
        node_selector=_node_selector([pick.device for pick in picks], node),
    )


def _result(pick: Pick, rng: random.Random) -> DeviceAllocationResult:
    device = pick.device.device
    return DeviceAllocationResult(
        request=pick.wanted.label,
        driver=pick.device.id.driver,
        pool=pick.device.id.pool,
        device=pick.device.id.device,
        admin_access=True if pick.wanted.admin_access else None,
        tolerations=pick.wanted.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=None if pick.consumed is None else random_uid(rng),
        consumed_capacity={} if pick.consumed is None else dict(written(pick.consumed, device)),
    )


# --- where it can be used ---------------------------------------------------------------------------------------------


def _node_selector(devices: Sequence[PoolDevice], node: Node) -> NodeSelector | None:
    """The nodes that can use all the devices; None if every node can."""
    if any(device.is_node_local for device in devices):
        requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node.name,))
        return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for device in devices:
        selector = device.device.node_selector if device.per_device_nodes else device.published.spec.node_selector
        # Validation allows exactly one term: several could not be joined.
        for term in () if selector is None else selector.node_selector_terms[:1]:
            expressions += [found for found in term.match_expressions if found not in expressions]
            fields += [found for found in term.match_fields if found not in fields]
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


# --- how it is configured ---------------------------------------------------------------------------------------------


def _config(claim: PreparedClaim, picks: Sequence[Pick]) -> list[DeviceAllocationConfiguration]:
    """The drivers' settings: those of the classes first, then those of the claim."""
    of_classes = any(pick.wanted.device_class.spec.config for pick in picks)
    if not of_classes and not claim.claim.spec.devices.config:
        return []
    chosen = _chosen(claim, picks)
    config: list[DeviceAllocationConfiguration] = []
    for name in dict.fromkeys(wanted.device_class.name for wanted in chosen):
        users = [wanted for wanted in chosen if wanted.device_class.name == name]
        labels = tuple(wanted.label for wanted in users)
        for setting in users[0].device_class.spec.config:
            config.append(DeviceAllocationConfiguration("FromClass", labels, setting.opaque))
    return config + _claim_config(claim.claim, chosen)


def _chosen(claim: PreparedClaim, picks: Sequence[Pick]) -> list[PreparedRequest]:
    """Of each request the alternative that was taken."""
    picked = dict.fromkeys(pick.wanted for pick in picks)
    return [wanted for alternatives in claim.requests for wanted in alternatives if wanted in picked]


def _claim_config(claim: ResourceClaim, chosen: Sequence[PreparedRequest]) -> list[DeviceAllocationConfiguration]:
    config = []
    for setting in claim.spec.devices.config:
        if not setting.requests:
            config.append(DeviceAllocationConfiguration("FromClaim", (), setting.opaque))
            continue
        concerned = [w for w in chosen if w.request in setting.requests or w.label in setting.requests]
        if concerned:
            labels = () if len(concerned) == len(chosen) else tuple(setting.requests)
            config.append(DeviceAllocationConfiguration("FromClaim", labels, setting.opaque))
    return config


_SEEN_WITHIN_SECONDS = 120.0
_LOOK_EVERY_SECONDS = 0.1
_DEVICES_FREED = ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE)
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

    def reserve(self, claims: PodResourceClaims, pod: Pod, node: Node) -> None:
        """Take the devices that the node gives; from now on nobody else gets them."""
        outcome = claims.outcome(node.name)
        if outcome is None:
            raise AllocationError("claim allocation not found for node")
        taken = [
            Reserved(prepared.claim, allocation_of(prepared, picks, node, self._handle.rng))
            for prepared, picks in zip(outcome.claims, outcome.picks, strict=True)
        ]
        for reserved in (*taken, *claims.shared):
            self._book.reserve(reserved.claim, reserved.allocation, pod)
            claims.reserved.append(reserved)

    def unreserve(self, claims: PodResourceClaims, pod: Pod) -> None:
        """Give everything back: what was only planned, and what was written already or is on its way."""
        for reserved in claims.reserved:
            uid = reserved.claim.uid
            if claims.created is not None and reserved.claim.name == NAME_IN_MEMORY:
                self._delete(claims.created, reserved.claim, pod)
            elif uid not in claims.sent:
                self._give_up(reserved.claim, pod)
        for claim in claims.claims:
            self._release(claim, claims.sent.get(claim.uid), pod)
        claims.reserved.clear()
        claims.sent.clear()
        claims.created = None

    def _delete(self, created: ResourceClaim, reserved: ResourceClaim, pod: Pod) -> None:
        self._handle.submit(ClaimDeletion(created), lambda _: self._give_up(reserved, pod))

    def _release(self, claim: ResourceClaim, sent: ClaimUpdate | None, pod: Pod) -> None:
        """Take the pod off a claim that it is written into, or may be: who asked for that may have been called back.

        A group that is written into a claim stays: its members are still to come.
        """
        current = self._book.get(claim.key)
        if current is None or current.uid != claim.uid:
            self._give_up(claim, pod)
            return
        if sent is not None and is_newer(sent.claim, current):
            current = sent.claim
        if sent is None and not is_reserved_for(current, pod):
            return
        release = ClaimUpdate(current, ClaimIntent(Act.RELEASE, pod))

        def released(_: Outcome) -> None:
            self._book.assume(release.claim)
            self._give_up(claim, pod)

        # Until it is known whether the devices were written, nobody else may have them.
        self._handle.submit(release, released)

    def _give_up(self, claim: ResourceClaim, pod: Pod) -> None:
        over = self._book.unreserve(claim.uid, pod.uid)
        if over is not None and over.turned_away:
            self._handle.activate(over.turned_away.values())
        self._requeue_if_free(claim, over)

    def _requeue_if_free(self, claim: ResourceClaim, over: PendingAllocation | None) -> None:
        """Devices that were only pending, or whose claim is gone: no watch will tell those who wait for them."""
        if over is None or claim.uid in self._book.ledger:
            return
        had = replace(claim, status=replace(claim.status, allocation=over.allocation))
        has = replace(claim, status=replace(claim.status, allocation=None))
        self._handle.requeue_on(_DEVICES_FREED, had, has)

    # --- in the API --------------------------------------------------------------------------------------------

    async def write(self, claims: PodResourceClaims, pod: Pod) -> None:
        """Reserve all claims for the pod and wait until their devices are ready; raises what went wrong."""
        planned = {reserved.claim.uid: reserved.allocation for reserved in claims.reserved}
        written = []
        for claim in claims.claims:
            written.append(await self._write_one(claims, claim, planned.get(claim.uid), pod))
        for reserved in claims.reserved:
            if reserved.claim.name == NAME_IN_MEMORY:
                written.append(await self._write_extended(claims, reserved, pod))
        for reserved in claims.reserved:
            self._requeue_if_free(reserved.claim, self._book.settle(reserved.claim.uid))
        if self._args.binding_timeout is not None and any(map(drivers_to_wait_for, written)):
            await Readiness(self._handle, self._args.binding_timeout, pod).wait(written)

    async def _write_one(
        self, claims: PodResourceClaims, claim: ResourceClaim, planned: AllocationResult | None, pod: Pod
    ) -> ResourceClaim:
        key = claim.key
        current = self._book.get(key)
        if current is None or current.uid != claim.uid:
            raise AllocationError(f"claim {key} got deleted in the meantime")
        allocation = claim.status.allocation if planned is None else planned
        intent = ClaimIntent(Act.RESERVE, pod, allocation, is_new=planned is not None, group=claims.group_of(claim))
        await self._reserve(claims, current, intent)
        return self._book.get(key) or current

    async def _reserve(self, claims: PodResourceClaims, current: ResourceClaim, intent: ClaimIntent) -> ResourceClaim:
        call = claims.sent[current.uid] = ClaimUpdate(current, intent, now=rfc3339(self._handle.clock.time()))
        await self._handle.perform(call)
        self._book.assume(call.claim)
        return call.claim

    async def _write_extended(self, claims: PodResourceClaims, reserved: Reserved, pod: Pod) -> ResourceClaim:
        creation = ClaimCreation(reserved.claim)
        try:
            await self._handle.perform(creation)
        except Exception:
            self._handle.count(_CREATIONS, "failure", "false", "", "Pod")
            raise
        self._handle.count(_CREATIONS, "success", "false", "", "Pod")
        claims.created = creation.claim
        intent = ClaimIntent(Act.RESERVE, pod, reserved.allocation, is_new=True)
        claims.created = written = await self._reserve(claims, creation.claim, intent)
        await self._be_seen(written)
        await self._handle.perform(ExtendedClaimStatus(written, pod, _served(pod, reserved.claim)))
        return written

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
