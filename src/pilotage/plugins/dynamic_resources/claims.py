"""Which claims a pod uses, and whether they can be used at all.

A pod names a claim directly, or names a template from which a controller makes a claim, for this pod or for its
PodGroup; the generated claim's name is then in the pod's status. A generated claim must belong to one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pilotage.api import ClusterIndex
from pilotage.api.group_members import group_key
from pilotage.model import Pod
from pilotage.model.meta import controller_of
from pilotage.model.pod import PodResourceClaim
from pilotage.model.pod_group import PodGroup
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
    if entry.resource_claim_name is None and not is_made_for(claim, pod) and not _is_of_its_group(claim, pod):
        raise ClaimProblem(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
    return claim


def claims_of_group(pod: Pod, group: PodGroup) -> set[str]:
    """The keys of the claims that the pod shares with its group: both have an equal entry for them."""
    generated = _generated(pod)
    shared = (entry for entry in pod.spec.resource_claims if entry in group.spec.resource_claims)
    names = (entry.resource_claim_name or generated.get(entry.name) for entry in shared)
    return {f"{pod.namespace}/{name}" for name in names if name}


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Is the pod the controller of the claim?"""
    metadata = claim.metadata
    controller = controller_of(metadata.owner_references)
    return controller is not None and controller.uid == pod.uid and metadata.namespace == pod.namespace


def _is_of_its_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Is the PodGroup that the pod names the controller of the claim? (A pod does not know the uid of its group.)"""
    controller = controller_of(claim.metadata.owner_references)
    if (
        controller is None
        or controller.kind != "PodGroup"
        or not controller.api_version.startswith("scheduling.k8s.io/")
    ):
        return False
    return group_key(pod) == f"{claim.metadata.namespace}/{controller.name}"


def is_newer(claim: ResourceClaim, than: ResourceClaim) -> bool:
    """Is this a later version of the claim?"""
    one, other = claim.metadata.resource_version, than.metadata.resource_version
    try:
        return int(one) > int(other)
    except ValueError:
        return one != other


class ReferencingPods(ClusterIndex):
    """Claim ("namespace/name") -> keys of the pods that use it."""

    kinds = frozenset({"Pod"})

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, None]] = {}

    def of(self, claim_key: str) -> list[str]:
        return list(self._pods.get(claim_key, ()))

    def object_put(self, kind: str, old: Any | None, new: Pod) -> None:
        if old is not None:
            if _uses_the_same(old, new):
                return
            self._drop(old)
        for claim_key in used_claims(new):
            self._pods.setdefault(claim_key, {})[new.key] = None

    def object_removed(self, kind: str, obj: Pod) -> None:
        self._drop(obj)

    def _drop(self, pod: Pod) -> None:
        for claim_key in used_claims(pod):
            users = self._pods.get(claim_key)
            if users is None:
                continue
            users.pop(pod.key, None)
            if not users:
                del self._pods[claim_key]


def _uses_the_same(old: Pod, new: Pod) -> bool:
    """Most changes of a pod are about other things than its claims."""
    if old.spec is not new.spec or old.name != new.name:
        return False
    return not new.spec.resource_claims or old.status.resource_claim_statuses == new.status.resource_claim_statuses


def used_claims(pod: Pod) -> list[str]:
    """The claims of a pod as far as they have names."""
    if not pod.spec.resource_claims:
        return []
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return [
        f"{pod.namespace}/{name}"
        for entry in pod.spec.resource_claims
        if (name := entry.resource_claim_name or generated.get(entry.name))
    ]
