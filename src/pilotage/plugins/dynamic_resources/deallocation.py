"""What PostFilter can do: free a claim that is in the way, if nobody else uses it.

A claim may have been allocated for a node that the pod cannot use any more. Its devices are freed, one claim at a
time, and the pod is tried again when that has happened.
"""

from __future__ import annotations

from pilotage.api import Handle, Reason, Reject
from pilotage.model import Pod
from pilotage.model.resource import ResourceClaim
from pilotage.plugins.dynamic_resources.claim_update import ClaimUpdate
from pilotage.plugins.dynamic_resources.claim_wishes import Act, ClaimIntent
from pilotage.plugins.dynamic_resources.extended_claim_calls import ClaimDeletion
from pilotage.plugins.dynamic_resources.state import PodResourceClaims


def free_one_claim(handle: Handle, claims: PodResourceClaims, pod: Pod) -> Reject:
    """Always a rejection: freeing takes a moment, and preemption may help meanwhile."""
    left_behind = claims.extended_claim
    if left_behind is not None and left_behind.spec.devices.requests:
        handle.submit(ClaimDeletion(left_behind))
        return Reject(Reason("ClaimDeleted", "deletion of ResourceClaim completed"))
    for claim in claims.unavailable.values():
        if _is_idle(claim, pod):
            handle.submit(ClaimUpdate(claim, ClaimIntent(Act.FREE, pod)))
            return Reject(Reason("ClaimDeallocated", "deallocation of ResourceClaim completed"))
    return Reject()


def _is_idle(claim: ResourceClaim, pod: Pod) -> bool:
    """Nobody but this pod uses the claim."""
    return all(consumer.uid == pod.uid for consumer in claim.status.reserved_for)
