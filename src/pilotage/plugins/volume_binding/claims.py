"""The claims of a pod, by what is left to do for them."""

from __future__ import annotations

from msgspec import Struct

from pilotage.api import Handle, Reason
from pilotage.model import Pod
from pilotage.model.storage import PersistentVolumeClaim, StorageClass
from pilotage.plugins.pod_volumes import ClaimOfPod, claim_not_found, claims_of, class_name_of, not_created_for
from pilotage.plugins.volume_binding.catalog import VolumeCatalog
from pilotage.plugins.volume_binding.matching import is_bound

_UNBOUND = Reason("UnboundImmediateClaims", "pod has unbound immediate PersistentVolumeClaims", unresolvable=True)


class VolumeError(Exception):
    """Something about volumes that should not be: the pod is tried again."""


class PodVolumeClaims(Struct, frozen=True):
    """All usable: a pod with any other claim is rejected altogether."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]
    """Not bound; their volume is chosen together with the node."""


def sorted_claims(handle: Handle, catalog: VolumeCatalog, pod: Pod) -> PodVolumeClaims | Reason:
    """The pod's claims, or why it cannot run anywhere."""
    known = handle.objects("PersistentVolumeClaim")
    used = claims_of(pod)
    for one in used:
        problem = _problem(pod, one, known.get(one.key(pod)))
        if problem is not None:
            return problem
    bound, delayed, immediate = [], [], []
    for one in used:
        claim = catalog.claim(one.key(pod))
        assert claim is not None, "the catalog knows every claim that is there"
        if is_bound(claim):
            bound.append(claim)
        elif not claim.spec.volume_name and _waits_for_consumer(handle, claim):
            delayed.append(claim)
        else:
            immediate.append(claim)
    return _UNBOUND if immediate else PodVolumeClaims(tuple(bound), tuple(delayed))


def _problem(pod: Pod, used: ClaimOfPod, claim: PersistentVolumeClaim | None) -> Reason | None:
    if claim is None and used.is_ephemeral:
        text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{used.name}"'
        return Reason("ClaimNotCreated", text, unresolvable=True)
    if claim is None:
        return claim_not_found(used.name)
    if claim.status.phase == "Lost":
        text = f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return Reason("ClaimLost", text, unresolvable=True)
    if claim.metadata.deletion_timestamp is not None:
        return Reason("ClaimDeleting", f'persistentvolumeclaim "{claim.name}" is being deleted', unresolvable=True)
    foreign = not_created_for(pod, claim) if used.is_ephemeral else None
    return None if foreign is None else Reason("ClaimNotOwned", foreign, unresolvable=True)


def _waits_for_consumer(handle: Handle, claim: PersistentVolumeClaim) -> bool:
    storage_class: StorageClass | None = handle.objects("StorageClass").get(class_name_of(claim))
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise VolumeError(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
    return storage_class.volume_binding_mode == "WaitForFirstConsumer"
