"""What one attempt to schedule a pod knows about its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pilotage.api import StateKey
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.requests import PreparedClaim
from pilotage.plugins.dynamic_resources.search import Picks


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """What the search found for one node."""

    claims: Sequence[PreparedClaim] = ()
    """The claims that were allocated together; the last may be the one for extended resources."""
    picks: Picks = ()


@dataclass(frozen=True, slots=True)
class Reserved:
    """A claim with what it is going to get."""

    claim: ResourceClaim
    allocation: AllocationResult


@dataclass(slots=True)
class PodClaims:
    """The claims of the pod, and what was found for the nodes that were looked at."""

    claims: Sequence[ResourceClaim]
    """All of them, in the order of the pod."""
    to_allocate: Sequence[PreparedClaim]
    extended: Mapping[str, str | None] = field(default_factory=dict)
    """Extended resources that the pod requests, each with the class behind it (None: devices cannot serve it)."""
    extended_claim: ResourceClaim | None = None
    """The claim for those that devices serve; without requests unless an earlier attempt left it behind."""
    outcomes: dict[str, NodeOutcome] = field(default_factory=dict)
    reserved: list[Reserved] = field(default_factory=list)
    """What Reserve took, in the order of the claims."""
    created: ResourceClaim | None = None
    """The claim for extended resources, once it was created for this attempt."""
    unavailable: dict[str, ResourceClaim] = field(default_factory=dict)
    """Allocated claims that some node could not use, by key: PostFilter may free one of them."""


NO_CLAIMS: Final = PodClaims((), ())
"""Of pods that use no devices; nothing is ever written into it."""

POD_CLAIMS = StateKey[PodClaims]("DynamicResources/claims")
