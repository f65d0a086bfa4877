"""What one attempt to schedule a pod knows about its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pilotage.api import StateKey
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.claim_update import ClaimUpdate
from pilotage.plugins.dynamic_resources.requests import PreparedClaim
from pilotage.plugins.dynamic_resources.search import Picks
from pilotage.plugins.dynamic_resources.verdicts import Column


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
    outcomes: dict[str, NodeOutcome] = msgspec.field(default_factory=dict)
    column: Column | None = None
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
