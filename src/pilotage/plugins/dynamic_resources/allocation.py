"""Can a node serve the claims of a pod, and with which devices? `PodResourceClaims` is what one attempt knows of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from pilotage.api import Budget, Detail, Handle, Mask, NodeTable, NodeView, Reason, Reject, Rejection, StateKey
from pilotage.model import Node, Pod
from pilotage.model.pod_group import PodGroup
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.args import DynamicResourcesArgs
from pilotage.plugins.dynamic_resources.binding_conditions import BindingFailed, is_overdue, is_ready
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.claim_update import ClaimUpdate
from pilotage.plugins.dynamic_resources.equal_nodes import EqualNodes
from pilotage.plugins.dynamic_resources.extended_claim import container_requests, with_requests
from pilotage.plugins.dynamic_resources.objections import objections
from pilotage.plugins.dynamic_resources.requests import (
    AllocationError,
    ClaimRequestsCache,
    NodeAllocationError,
    PreparedClaim,
)
from pilotage.plugins.dynamic_resources.search import Picks, Search, TimeLimit
from pilotage.plugins.dynamic_resources.slices import NodePools, SliceIndex, pools_for
from pilotage.plugins.dynamic_resources.verdicts import Columns, VerdictColumn
from pilotage.plugins.node_selection import term_matches


class NodeOutcome(msgspec.Struct, frozen=True):
    """What the search found for one node."""

    claims: Sequence[PreparedClaim] = ()
    """The claims that were allocated together; the last may be the one for extended resources."""
    picks: Picks = ()


class Reserved(msgspec.Struct, frozen=True):
    """A claim with what it is going to get."""

    claim: ResourceClaim
    allocation: AllocationResult


class PodResourceClaims(msgspec.Struct, eq=False):
    """The claims of the pod, and what was found for the nodes that were looked at."""

    claims: Sequence[ResourceClaim]
    """All of them, in the order of the pod."""
    to_allocate: Sequence[PreparedClaim]
    extended: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    """Extended resources that the pod requests, each with the class behind it (None: devices cannot serve it)."""
    extended_claim: ResourceClaim | None = None
    """The claim for those that devices serve; without requests unless an earlier attempt left it behind."""
    shared: Sequence[Reserved] = ()
    """What is being allocated for siblings, members of the pod's group, and is used by this pod too."""
    group: PodGroup | None = None
    """The PodGroup that has claims for its members, if the pod is one of them."""
    of_group: Collection[str] = ()
    """The keys of the claims that the pod uses in the name of that group."""
    outcomes: dict[str, NodeOutcome] = msgspec.field(default_factory=dict)
    column: VerdictColumn | None = None
    """What nodes answered to claims like these; in `outcomes` are the answers to just these."""
    reserved: list[Reserved] = msgspec.field(default_factory=list)
    """What Reserve took, in the order of the claims."""
    sent: dict[str, ClaimUpdate] = msgspec.field(default_factory=dict)
    """Reservations that were submitted, by UID of the claim: they may be on their way, done or failed."""
    created: ResourceClaim | None = None
    """The claim for extended resources, once it was created for this attempt."""
    unavailable: dict[str, ResourceClaim] = msgspec.field(default_factory=dict)
    """Allocated claims that some node could not use, by key: PostFilter may free one of them."""

    @property
    def ask_only_for_devices(self) -> bool:
        """No claim has its devices already, and no extended resource is served by them."""
        return self.extended_claim is None and len(self.to_allocate) == len(self.claims)

    def group_of(self, claim: ResourceClaim) -> PodGroup | None:
        """The group in whose name the claim is used; None if it is the pod's own affair."""
        return self.group if claim.key in self.of_group else None

    def outcome(self, node_name: str) -> NodeOutcome | None:
        """What a node would give; None if it was not asked, or rejected."""
        known = self.outcomes.get(node_name)
        if known is None and self.column is not None:
            picks = self.column.picks(node_name)
            if picks is not None:
                known = self.outcomes[node_name] = NodeOutcome(self.to_allocate, picks)
        return known


NO_CLAIMS: Final = PodResourceClaims((), ())
"""Of pods that use no devices; nothing is ever written into it."""

POD_CLAIMS = StateKey[PodResourceClaims]("DynamicResources/claims")


_STEPS_PER_CLAIM = 2
_STEPS_WORTH_REMEMBERING = 64
_MOST_DETAILS = 12


def rejected(code: str, message: str) -> Reject:
    """Evicting pods does not free devices: their claims stay allocated."""
    return Reject(Reason(code, message, unresolvable=True))


_NOT_AVAILABLE: Final = rejected("ClaimNotAvailable", "resourceclaim not available on the node")
_NO_DEVICES: Final = rejected("NoDevices", "cannot allocate all claims")
_NOT_ADVERTISED: Final = rejected("NotAdvertised", "cannot fit resource")
_OLD_EXTENDED_CLAIM: Final = rejected("OldExtendedClaim", "cannot schedule extended resource claim")


class NodeAllocator:
    """Tries the claims of a pod on single nodes."""

    def __init__(self, handle: Handle, args: DynamicResourcesArgs) -> None:
        self._handle = handle
        self._args = args
        self._requests = ClaimRequestsCache()
        self._pools: dict[str, tuple[Node, tuple[int, int], NodePools]] = {}
        self._columns = Columns(handle)

    @cached_property
    def _book(self) -> ClaimBook:
        return self._handle.index(ClaimBook)

    @cached_property
    def _equal_nodes(self) -> EqualNodes:
        return EqualNodes(self._book.ledger)

    @cached_property
    def _slices(self) -> SliceIndex:
        return self._handle.index(SliceIndex)

    def prepare(self, claim: ResourceClaim) -> PreparedClaim:
        """A claim with what it asks for; MissingClass for the first class that is not there."""
        return self._requests.prepare(claim, self._handle.objects("DeviceClass").get)

    def rejections(
        self, claims: PodResourceClaims, pod: Pod, nodes: NodeTable, budget: Budget
    ) -> Iterator[tuple[Mask, Reason]]:
        """The same for many nodes; claims that ask for the same share the answers."""
        if not claims.ask_only_for_devices:
            yield from self._one_by_one(claims, pod, nodes, budget)
            return
        column = claims.column = self._columns.of(claims.to_allocate)
        codes = column.codes(nodes, lambda node: self._search(claims.to_allocate, node, budget))
        for number, rejection in enumerate(column.rejections, start=1):
            mask = codes == number
            if mask.any():
                yield mask, rejection.reasons[0]

    def _one_by_one(
        self, claims: PodResourceClaims, pod: Pod, nodes: NodeTable, budget: Budget
    ) -> Iterator[tuple[Mask, Reason]]:
        rejected_by: dict[Reason, list[int]] = {}
        for row, name in enumerate(nodes.names):
            node = self._handle.node(name)
            rejection = None if node is None else self.try_node(claims, pod, node, budget)
            if rejection is not None:
                rejected_by.setdefault(rejection.reasons[0], []).append(row)
        for reason, rows in rejected_by.items():
            mask = nodes.everywhere(False)
            mask[rows] = True
            yield mask, reason

    def try_node(self, claims: PodResourceClaims, pod: Pod, node: NodeView, budget: Budget) -> Rejection | None:
        """Remember what the node would give, or say why it cannot serve the claims."""
        budget.spend(_STEPS_PER_CLAIM * (1 + len(claims.claims)))
        wanted = self._wanted(claims, pod, node)
        if isinstance(wanted, Reject):
            return wanted
        unavailable = [claim for claim in claims.claims if not self._is_available(claim, node.node)]
        outcome = NodeOutcome()
        if wanted:
            picks = self._search(wanted, node.node, budget)
            if isinstance(picks, Reject):
                return picks
            outcome = NodeOutcome(wanted, picks)
        if unavailable:
            claims.unavailable.update({claim.key: claim for claim in unavailable})
            return _NOT_AVAILABLE
        claims.outcomes[node.name] = outcome
        return None

    def _wanted(self, claims: PodResourceClaims, pod: Pod, node: NodeView) -> Sequence[PreparedClaim] | Reject:
        """The claims that need devices of this node."""
        extended = claims.extended_claim
        if extended is None:
            return claims.to_allocate
        if extended.spec.devices.requests:
            # Left behind by an earlier attempt: PostFilter deletes it, then all starts anew.
            return _OLD_EXTENDED_CLAIM
        served_by_devices = {}
        for resource, class_name in claims.extended.items():
            if node.allocatable(resource) > 0:
                continue
            if class_name is None:
                return _NOT_ADVERTISED
            served_by_devices[resource] = class_name
        requests = container_requests(pod.spec, served_by_devices)
        if not requests:
            return claims.to_allocate
        claim = with_requests(extended, requests, served_by_devices)
        return [*claims.to_allocate, self.prepare(claim)]

    def _is_available(self, claim: ResourceClaim, node: Node) -> bool:
        """Can a claim that has its devices already be used on this node?"""
        allocation = claim.status.allocation
        if allocation is None:
            return True
        selector = allocation.node_selector
        if selector is not None and not any(term_matches(term, node) for term in selector.node_selector_terms):
            return False
        timeout = self._args.binding_timeout
        if timeout is None:
            return True
        try:
            return is_ready(claim) or not is_overdue(claim, self._handle.clock.time(), timeout)
        except BindingFailed:
            return False

    # --- for people --------------------------------------------------------------------------------------------

    def details(self, claims: PodResourceClaims, pod: Pod, node: NodeView, budget: Budget) -> Iterator[Detail]:
        """Why the node cannot serve the claims: which device is kept from which request by which rule."""
        for claim in claims.claims:
            if not self._is_available(claim, node.node):
                yield Detail("ClaimElsewhere", f"claim {claim.key} has its devices already{_where(claim)}")
        wanted = self._wanted(claims, pod, node)
        if isinstance(wanted, Reject) or not wanted or not isinstance(self._search(wanted, node.node, budget), Reject):
            return
        pools = self._pools_of(node.node, budget)
        search = Search(node.node, pools, self._book.ledger, wanted)
        details = list(objections(search, pools, wanted, lambda device: _held_text(self._book.holders(device))))
        yield from details[:_MOST_DETAILS]
        if len(details) > _MOST_DETAILS:
            yield Detail("More", f"and {len(details) - _MOST_DETAILS} more such reasons")

    # --- devices -----------------------------------------------------------------------------------------------

    def _search(self, claims: Sequence[PreparedClaim], node: Node, budget: Budget) -> Picks | Reject:
        pools = self._pools_of(node, budget)
        known = self._equal_nodes.answer(claims, pools)
        if known is not None:
            budget.spend(len(pools.candidates))
            return known
        limit = TimeLimit(node.name, budget, self._handle.clock, self._args.filter_timeout)
        search = Search(node, pools, self._book.ledger, claims, limit)
        found = _outcome(search)
        if search.steps >= _STEPS_WORTH_REMEMBERING:
            self._equal_nodes.remember(claims, pools, found)
        return found

    def _pools_of(self, node: Node, budget: Budget) -> NodePools:
        version = self._slices.version(node.name)
        known = self._pools.get(node.name)
        if known is not None and known[0] is node and known[1] == version:
            return known[2]
        pools = pools_for(self._slices, node, budget)
        self._pools[node.name] = (node, version, pools)
        return pools


def _outcome(search: Search) -> Picks | Reject:
    try:
        picks = search.run()
    except NodeAllocationError as error:
        return rejected("BadPools", str(error))
    except RecursionError:
        raise AllocationError("the claims ask for more devices than can be searched for together") from None
    return _NO_DEVICES if picks is None else picks


def _held_text(claims: Sequence[str]) -> str:
    more = f" and {len(claims) - 1} more" if len(claims) > 1 else ""
    return f"allocated to claim {claims[0]}{more}" if claims else "taken by another request of the pod"


def _where(claim: ResourceClaim) -> str:
    """On which nodes an allocated claim can be used, as far as that is said by name, and how many pods use it."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    terms = selector.node_selector_terms if selector is not None else ()
    names = [name for term in terms for r in term.match_fields if r.operator == "In" for name in r.values]
    where = f" on node {', '.join(names[:3])}" if names else " on other nodes"
    users = len(claim.status.reserved_for)
    return f"{where}, reserved for {users} pod{'' if users == 1 else 's'}"
