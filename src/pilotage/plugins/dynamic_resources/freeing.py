"""Devices are taken away from claims that nobody uses, so that a pod or a group that does not fit gets them elsewhere.

Claims whose devices some node could not use are looked at (`PodResourceClaims.unavailable`). What is freed here is free
when the API server says so; the pod or the group is tried again then or by time.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.api import GroupAttempt, Handle, Reason, Reject
from pilotage.api.group_members import PodGroups
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.model.resource import ResourceClaim
from pilotage.plugins.dynamic_resources.allocation import POD_CLAIMS, PodResourceClaims
from pilotage.plugins.dynamic_resources.claim_update import Act, ClaimIntent, ClaimUpdate
from pilotage.plugins.dynamic_resources.extended_claim import ClaimDeletion

_DELETED = Reason("ClaimDeleted", "deletion of ResourceClaim completed")
_DEALLOCATED = Reason("ClaimDeallocated", "deallocation of ResourceClaim completed")
_OF_MEMBERS = Reason("ClaimsOfMembersFreed", "deallocation and deletion of ResourceClaims completed")
_OF_GROUP = Reason("ClaimOfGroupDeallocated", "deallocation of PodGroup ResourceClaim completed")
_LET_GO = Reason("ClaimOfGroupReleased", "ResourceClaim unreserved for PodGroup", unresolvable=True)


def free_for_pod(handle: Handle, claims: PodResourceClaims, pod: Pod) -> Reject:
    """Always a rejection: freeing takes a moment, and preemption may help meanwhile."""
    done = _free_one(handle, claims, pod, set())
    return Reject() if done is None else Reject(done)


def free_for_group(handle: Handle, attempt: GroupAttempt) -> Reject:
    """The same for every member. If that is not enough, the claims of the group are looked at.

    They are the group's as long as one member has a node. Before that they are freed if no other uses them; else the
    group lets go of one, so that nobody has to wait for a group that does not start.
    """
    known = zip(attempt.pods, attempt.states, strict=True)
    members = [(pod, claims) for pod, state in known if (claims := state.get(POD_CLAIMS)) is not None]
    freed: set[str] = set()
    left = [(pod, claims) for pod, claims in members if _free_one(handle, claims, pod, freed) is None]
    if left and (done := _free_of_group(handle, attempt.group, left)) is not None:
        return Reject(done)
    return Reject(_OF_MEMBERS) if len(left) < len(members) else Reject()


def _free_one(handle: Handle, claims: PodResourceClaims, pod: Pod, freed: set[str]) -> Reason | None:
    """Free one claim of the pod, or find one that is `freed` already; None if there is none."""
    left_behind = claims.extended_claim
    if left_behind is not None and left_behind.spec.devices.requests:
        handle.submit(ClaimDeletion(left_behind))
        return _DELETED
    for claim in claims.unavailable.values():
        if claim.uid in freed:
            return _DEALLOCATED
        if _has_no_user_but(claim, pod.uid):
            handle.submit(ClaimUpdate(claim, ClaimIntent(Act.FREE, pod)))
            freed.add(claim.uid)
            return _DEALLOCATED
    return None


def _free_of_group(handle: Handle, group: PodGroup, members: Iterable[tuple[Pod, PodResourceClaims]]) -> Reason | None:
    concerned = [(pod, claims) for pod, claims in members if claims.of_group]
    if not concerned or handle.index(PodGroups).scheduled(group.key) or handle.awaits_view(concerned[0][0]):
        return None
    for pod, claims in concerned:
        for claim in claims.unavailable.values():
            if claims.group_of(claim) is not None and _has_no_user_but(claim, group.uid):
                handle.submit(ClaimUpdate(claim, ClaimIntent(Act.FREE, pod, group=group)))
                return _OF_GROUP
    for pod, claims in concerned:
        for claim in claims.claims:
            if any(user.uid == group.uid for user in claim.status.reserved_for):
                handle.submit(ClaimUpdate(claim, ClaimIntent(Act.RELEASE, pod, group=group)))
                return _LET_GO
    return None


def _has_no_user_but(claim: ResourceClaim, uid: str) -> bool:
    return all(consumer.uid == uid for consumer in claim.status.reserved_for)
