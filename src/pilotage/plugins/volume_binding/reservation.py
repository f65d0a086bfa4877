"""What Reserve assumes for the claims of a pod, and how it is taken back."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from pilotage.model.meta import ObjectReference
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim
from pilotage.plugins.volume_binding.catalog import VolumeCatalog
from pilotage.plugins.volume_binding.finding import SELECTED_NODE, Found
from pilotage.plugins.volume_binding.matching import names_claim

_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


class Binding(Struct, frozen=True):
    """A volume that is reserved for a claim."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    is_new: bool
    """False if the volume named the claim already: there is nothing to write."""


class Order(Struct, frozen=True):
    """A claim whose volume is to be made for the node."""

    claim: PersistentVolumeClaim
    is_new: bool
    """False if the claim named the node already, by an earlier attempt or another pod."""


class AssumedVolumes(Struct, frozen=True):
    """The objects as they were assumed."""

    bindings: tuple[Binding, ...] = ()
    orders: tuple[Order, ...] = ()


def reserve(catalog: VolumeCatalog, found: Found, node_name: str) -> AssumedVolumes:
    """Assume volumes for claims, and a node to volumes that are to be made."""
    bindings = tuple(_binding(volume, claim) for volume, claim in found.bindings)
    orders = tuple(_order(provision.claim, node_name) for provision in found.provisions)
    for binding in bindings:
        if binding.is_new:
            catalog.assume_volume(binding.volume)
    for order in orders:
        if order.is_new:
            catalog.assume_claim(order.claim)
    return AssumedVolumes(bindings, orders)


def release(catalog: VolumeCatalog, reservation: AssumedVolumes) -> None:
    """Take back what was assumed, as far as it still stands; not what another pod assumed for the same claim."""
    for binding in reservation.bindings:
        if binding.is_new:
            catalog.restore_volume(binding.volume)
    for order in reservation.orders:
        if order.is_new:
            catalog.restore_claim(order.claim)


def _binding(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Binding:
    reference = volume.spec.claim_ref
    if reference is not None and names_claim(volume, claim) and reference.uid == claim.uid:
        return Binding(volume, claim, is_new=False)
    annotations = dict(volume.annotations)
    if not names_claim(volume, claim):
        # The volume controller may undo what a scheduler did, but not what a user did.
        annotations.setdefault(_BOUND_BY_CONTROLLER, "yes")
    assumed = msgspec.structs.replace(
        volume,
        metadata=msgspec.structs.replace(volume.metadata, annotations=annotations),
        spec=msgspec.structs.replace(volume.spec, claim_ref=_reference(claim)),
    )
    return Binding(assumed, claim, is_new=True)


def _reference(claim: PersistentVolumeClaim) -> ObjectReference:
    return ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
    )


def _order(claim: PersistentVolumeClaim, node_name: str) -> Order:
    if claim.annotations.get(SELECTED_NODE) == node_name:
        return Order(claim, is_new=False)
    metadata = msgspec.structs.replace(claim.metadata, annotations={**claim.annotations, SELECTED_NODE: node_name})
    return Order(msgspec.structs.replace(claim, metadata=metadata), is_new=True)
