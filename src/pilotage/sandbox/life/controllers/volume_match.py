"""Which volume a claim may have: the rules, without any effects.

A volume that names the claim is the claim's. Any other must be free, of the claim's class, mode and attributes class,
offer all access modes that the claim asks for, carry the labels of its selector and be large enough; of several, the
smallest is taken, then the first by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from pilotage.model.quantity import parse_quantity
from pilotage.model.selectors import LabelSelector

Object: TypeAlias = dict[str, Any]


def storage_class_of(obj: Object) -> str:
    """The class of a claim or a volume; "" if it has none."""
    annotations = obj["metadata"].get("annotations") or {}
    name: str = annotations.get("volume.beta.kubernetes.io/storage-class") or obj["spec"].get("storageClassName") or ""
    return name


def is_bound_to(volume: Object, claim: Object) -> bool:
    """Whether the volume names this claim (by uid, or by name alone when it was reserved beforehand)."""
    reference = volume["spec"].get("claimRef")
    if not reference:
        return False
    metadata = claim["metadata"]
    same_name = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return same_name and reference.get("uid", "") in ("", metadata["uid"])


def smallest_fitting(claim: Object, volumes: Iterable[Object]) -> Object | None:
    """The free volume to take for the claim, if any."""
    fitting = [volume for volume in volumes if _fits(claim, volume)]
    return min(fitting, key=lambda volume: (_capacity(volume), volume["metadata"]["name"]), default=None)


def requested_storage(claim: Object) -> str:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", "0"))


def _fits(claim: Object, volume: Object) -> bool:
    wants, has = claim["spec"], volume["spec"]
    if has.get("claimRef") or "deletionTimestamp" in volume["metadata"]:
        return False
    if storage_class_of(claim) != storage_class_of(volume):
        return False
    if (wants.get("volumeMode") or "Filesystem") != (has.get("volumeMode") or "Filesystem"):
        return False
    if (wants.get("volumeAttributesClassName") or "") != (has.get("volumeAttributesClassName") or ""):
        return False
    if not set(wants.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return False
    if not _is_selected(wants.get("selector"), volume):
        return False
    return bool(_capacity(volume) >= parse_quantity(requested_storage(claim)))


def _is_selected(selector: Object | None, volume: Object) -> bool:
    if not selector:
        return True
    return msgspec.convert(selector, LabelSelector).matches(volume["metadata"].get("labels") or {})


def _capacity(volume: Object) -> Any:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage", "0"))
