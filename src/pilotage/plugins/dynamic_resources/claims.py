"""Which claims a pod uses, and whether they can be used at all.

A pod names a claim directly, or names a template from which a controller makes a claim for this pod alone; the
generated claim's name is then in the pod's status. A generated claim must belong to the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pilotage.model import Pod
from pilotage.model.meta import controller_of
from pilotage.model.pod import PodResourceClaim
from pilotage.model.resource import ResourceClaim

ClaimLookup = Callable[[str], ResourceClaim | None]
"""A claim by its key ("namespace/name")."""


class ClaimProblem(Exception):
    """A claim that is not there yet, or that the pod must not use; the text is what users see."""


def _generated(pod: Pod) -> dict[str, str | None]:
    """The names of the claims that were made for entries of the pod; None where no claim is needed."""
    # Reversed: the first of several that are about the same entry counts.
    return {status.name: status.resource_claim_name for status in reversed(pod.status.resource_claim_statuses)}


def _claim_name(pod: Pod, entry: PodResourceClaim, generated: Mapping[str, str | None]) -> str | None:
    """The claim's name; None if the controller found that no claim is needed, ClaimProblem if it is not known yet."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.name not in generated:
        raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')
    return generated[entry.name]


def claims_of(pod: Pod, lookup: ClaimLookup) -> list[ResourceClaim]:
    """The claims of the pod, in its own order; ClaimProblem for the first that cannot be used.

    Entries that need no claim are left out.
    """
    claims = []
    generated = _generated(pod)
    for entry in pod.spec.resource_claims:
        name = _claim_name(pod, entry, generated)
        if name is not None:
            claims.append(_usable(pod, entry, name, lookup))
    return claims


def _usable(pod: Pod, entry: PodResourceClaim, name: str, lookup: ClaimLookup) -> ResourceClaim:
    key = f"{pod.namespace}/{name}"
    claim = lookup(key)
    if claim is None:
        raise ClaimProblem(f'could not find ResourceClaim "{key}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimProblem(f'resourceclaim "{claim.name}" is being deleted')
    if entry.resource_claim_name is None and not is_made_for(claim, pod):
        raise ClaimProblem(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
    return claim


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Is the pod the controller of the claim?"""
    metadata = claim.metadata
    controller = controller_of(metadata.owner_references)
    return controller is not None and controller.uid == pod.uid and metadata.namespace == pod.namespace


def is_newer(claim: ResourceClaim, than: ResourceClaim) -> bool:
    """Is this a later version of the claim?"""
    one, other = claim.metadata.resource_version, than.metadata.resource_version
    try:
        return int(one) > int(other)
    except ValueError:
        return one != other
