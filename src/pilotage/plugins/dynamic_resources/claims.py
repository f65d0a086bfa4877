"""Which claims a pod uses, and whether they can be used at all.

A pod names a claim directly, or names a template from which a controller makes a claim for this pod alone; the
generated claim's name is then in the pod's status. A generated claim must belong to the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pilotage.model import Pod
from pilotage.model.pod import PodResourceClaim
from pilotage.model.resource import ResourceClaim

ClaimLookup = Callable[[str], ResourceClaim | None]
"""A claim by its key ("namespace/name")."""


class ClaimProblem(Exception):
    """A claim that is not there yet, or that the pod must not use; the text is what users see."""


def claim_names(pod: Pod) -> Iterator[tuple[PodResourceClaim, str]]:
    """The entries of the pod with the names of their claims; entries that need no claim are left out.

    Raises ClaimProblem for a claim that was not generated yet.
    """
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)
        if name is not None:
            yield entry, name


def claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The claim's name; None if the controller found that no claim is needed."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')


def claims_of(pod: Pod, lookup: ClaimLookup) -> list[ResourceClaim]:
    """The claims of the pod, in its own order; ClaimProblem for the first that cannot be used."""
    return [_usable(pod, entry, name, lookup) for entry, name in claim_names(pod)]


def _usable(pod: Pod, entry: PodResourceClaim, name: str, lookup: ClaimLookup) -> ResourceClaim:
    claim = lookup(f"{pod.namespace}/{name}")
    if claim is None:
        raise ClaimProblem(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimProblem(f'resourceclaim "{claim.name}" is being deleted')
    if entry.resource_claim_name is None and not is_made_for(claim, pod):
        raise ClaimProblem(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
    return claim


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Is the pod the controller of the claim?"""
    controllers = (owner.uid for owner in claim.metadata.owner_references if owner.controller)
    return claim.namespace == pod.namespace and next(controllers, None) == pod.uid


def is_newer(claim: ResourceClaim, than: ResourceClaim) -> bool:
    """Is this a later version of the claim?"""
    try:
        return int(claim.resource_version) > int(than.resource_version)
    except ValueError:
        return claim.resource_version != than.resource_version
