"""Rules for volumes, claims, storage classes and what CSI drivers report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, nested
from pilotage.sandbox.rules.validation.field_rules import KindRules, at_least, fields, immutable, nothing, one_of
from pilotage.sandbox.rules.validation.problems import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from pilotage.sandbox.rules.validation.quantities import Quantities, Quantity, amount_problem
from pilotage.sandbox.rules.validation.selectors import label_selector, node_selector

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CLAIM_IS_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
# Everything in the spec of a PersistentVolume that is not its source.
_VOLUME_FIELDS: Final = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def _access_modes(modes: Sequence[str], path: str) -> Errors:
    if not modes:
        return [required(path, "at least 1 access mode is required")]
    errors = [not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _requested_size(spec: Json, path: str) -> Errors:
    requests = (spec.get("resources") or {}).get("requests") or {}
    path = f"{path}.resources[storage]"
    return _size_errors(requests["storage"], path) if "storage" in requests else [required(path)]


def _offered_size(capacity: Quantities, path: str) -> Errors:
    if not capacity:
        return [required(path)]
    if "storage" not in capacity:
        return [not_supported(path, sorted(capacity), ("storage",))]
    return _size_errors(capacity["storage"], f"{path}[storage]")


def _size_errors(size: Quantity, path: str) -> Errors:
    if problem := amount_problem("storage", size):
        return [invalid(path, str(size), problem)]
    return [] if parse_quantity(size) > 0 else [invalid(path, str(size), "must be greater than zero")]


def _amount(size: Quantity, path: str) -> Errors:
    problem = amount_problem("storage", size)
    return [invalid(path, str(size), problem)] if problem else []


def _nodes(affinity: Json, path: str) -> Errors:
    if affinity.get("required") is None:
        return [required(f"{path}.required", "must specify required node constraints")]
    return node_selector(affinity["required"], f"{path}.required")


def _drivers(drivers: Sequence[Json], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for index, driver in enumerate(drivers):
        place, name = f"{path}[{index}]", driver.get("name")
        if not name:
            errors.append(required(f"{place}.name"))
        elif name in seen:
            errors.append(duplicate(f"{place}.name", name))
        seen.add(name)
        errors += _DRIVER(driver, place)
    return errors


def _not_empty(source: Json, path: str) -> Errors:
    return [] if source else [required(path)]


def _claim_update(old_claim: Json, new_claim: Json) -> Errors:
    old, new = dict_or_empty(old_claim.get("spec")), dict(dict_or_empty(new_claim.get("spec")))
    new["resources"] = old.get("resources")
    new["volumeAttributesClassName"] = old.get("volumeAttributesClassName")
    # Filled in once: by the binder, or when a default class appears.
    for once in ("volumeName", "storageClassName"):
        if old.get(once) in (None, ""):
            new[once] = old.get(once)
    if _set_fields(old) != _set_fields(new):
        return [forbidden("spec", _CLAIM_IS_IMMUTABLE)]
    return _shrink_errors(old_claim, new_claim)


def _set_fields(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if value is not None}


def _shrink_errors(old: Json, new: Json) -> Errors:
    before, now = (nested(obj, "spec", "resources", "requests", "storage") for obj in (old, new))
    if before is None or now is None or before == now:
        return []
    capacity = nested(old, "status", "capacity", "storage")
    least = capacity if capacity is not None else before
    if _size(now) < _size(least):
        problem = (
            "field can not be less than status.capacity"
            if capacity is not None
            else "field can not be less than previous value"
        )
        return [forbidden("spec.resources.requests.storage", problem)]
    return []


def _size(text: Any) -> Any:
    try:
        return parse_quantity(text)
    except (ValueError, TypeError):
        return 0


def _volume_update(old: Json, new: Json) -> Errors:
    problem = "spec.persistentvolumesource is immutable after creation"
    has_changed = _source(dict_or_empty(old.get("spec"))) != _source(dict_or_empty(new.get("spec")))
    errors = [forbidden("spec.persistentvolumesource", problem)] if has_changed else []
    return errors + immutable("spec.volumeMode")(old, new)


def _source(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in _VOLUME_FIELDS}


def _storage_class_update(old: Json, new: Json) -> Errors:
    errors = [
        forbidden(name, f"updates to {name} are forbidden.")
        for name in ("parameters", "provisioner", "reclaimPolicy")
        if (old.get(name) or None) != (new.get(name) or None)
    ]
    return errors + immutable("volumeBindingMode")(old, new)


_CLAIM: Final = fields(
    ("accessModes", _access_modes, ()),
    ("", _requested_size),
    ("volumeMode", one_of("Block", "Filesystem")),
    ("selector", label_selector),
)
_VOLUME: Final = fields(
    ("accessModes", _access_modes, ()),
    ("capacity", _offered_size, {}),
    ("persistentVolumeReclaimPolicy", one_of("Delete", "Retain", "Recycle")),
    ("volumeMode", one_of("Block", "Filesystem")),
    ("nodeAffinity", _nodes),
)
_STORAGE_CLASS: Final = fields(
    ("provisioner!", nothing),
    ("reclaimPolicy", one_of("Delete", "Retain")),
    ("volumeBindingMode", one_of("Immediate", "WaitForFirstConsumer")),
)
_DRIVER: Final = fields(("nodeID!", nothing), ("allocatable", fields(("count", at_least(0)))))
_STORAGE_CAPACITY: Final = fields(
    ("storageClassName!", nothing),
    ("capacity", _amount),
    ("maximumVolumeSize", _amount),
    ("nodeTopology", label_selector),
)
_ATTACHMENT: Final = fields(("attacher!", nothing), ("nodeName!", nothing), ("source", _not_empty, {}))

STORAGE_RULES: Final[Mapping[str, KindRules]] = {
    "PersistentVolumeClaim": KindRules(fields(("spec!", _CLAIM)), update=_claim_update),
    "PersistentVolume": KindRules(fields(("spec!", _VOLUME)), update=_volume_update),
    "StorageClass": KindRules(_STORAGE_CLASS, update=_storage_class_update),
    "CSINode": KindRules(fields(("spec", fields(("drivers", _drivers))))),
    "CSIStorageCapacity": KindRules(_STORAGE_CAPACITY),
    "VolumeAttachment": KindRules(fields(("spec", _ATTACHMENT, {}))),
}
