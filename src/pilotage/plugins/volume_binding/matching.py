"""Which existing volume a claim takes on a node."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pilotage.model.quantity import quantity_value
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim
from pilotage.plugins.pod_volumes import class_name_of
from pilotage.plugins.volume_binding.catalog import VolumeCatalog, size_of
from pilotage.plugins.volume_binding.topology import affinity_matches, required_affinity


def requested_size(claim: PersistentVolumeClaim) -> int:
    return quantity_value(claim.spec.resources.requests.get("storage", 0))


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """The claim has its volume, for good."""
    return bool(claim.spec.volume_name) and "pv.kubernetes.io/bind-completed" in claim.annotations


def names_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is reserved for this very claim."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.uid)


def volume_for(
    claim: PersistentVolumeClaim, catalog: VolumeCatalog, labels: Mapping[str, str], taken: Collection[str]
) -> PersistentVolume | None:
    """A volume that was reserved for the claim, else the smallest free one that suits; None if there is none."""
    class_name = class_name_of(claim)
    for volume in catalog.claimed_by(class_name, claim.key):
        if volume.name not in taken and names_claim(volume, claim) and _could_serve(volume, claim):
            return volume if affinity_matches(required_affinity(volume), labels) else None
    best: PersistentVolume | None = None
    for offered in catalog.free_volumes(class_name, labels, requested_size(claim)):
        for volume in offered:
            if best is not None and (size_of(volume), volume.name) >= (size_of(best), best.name):
                break
            if volume.name not in taken and _suits(volume, claim, labels):
                best = volume
                break
    return best


def _could_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    wants, has = claim.spec, volume.spec
    return (
        size_of(volume) >= requested_size(claim)
        and (wants.volume_mode or "Filesystem") == (has.volume_mode or "Filesystem")
        and (wants.volume_attributes_class_name or "") == (has.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, labels: Mapping[str, str]) -> bool:
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and _could_serve(volume, claim)
        and (selector is None or selector.matches(volume.labels))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and affinity_matches(required_affinity(volume), labels)
    )
