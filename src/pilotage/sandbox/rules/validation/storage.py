"""Rules for volumes, claims, storage classes and what CSI drivers report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import field

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, nested
from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject
from pilotage.sandbox.rules.validation.pod_shapes import Anything, LabelSelector, NodeSelector, Resources
from pilotage.sandbox.rules.validation.problems import (
    IMMUTABLE,
    Errors,
    at_least,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
)
from pilotage.sandbox.rules.validation.quantities import amount_problem
from pilotage.sandbox.rules.validation.selectors import label_selector_errors, node_selector_errors
from pilotage.sandbox.rules.validation.shapes import Int32, Quantities, Quantity, Shape

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM_POLICIES: Final = ("Delete", "Retain")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
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


class PersistentVolumeClaimSpec(Shape):
    access_modes: list[str] | None = None
    resources: Resources | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None


class ClaimStatus(Shape):
    capacity: Quantities | None = None
    access_modes: list[str] | None = None


class Claim(AnyObject):
    spec: PersistentVolumeClaimSpec | None = None
    status: ClaimStatus | None = None


class VolumeNodeAffinity(Shape):
    required: NodeSelector | None = None


class VolumeSpec(Shape):
    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    persistent_volume_reclaim_policy: str | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(AnyObject):
    spec: VolumeSpec | None = None


class StorageClass(AnyObject):
    provisioner: str | None = None
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None


class NodeAllocatable(Shape):
    count: Int32 | None = None


class CsiNodeDriver(Shape):
    name: str | None = None
    node_id: str | None = field(default=None, name="nodeID")
    allocatable: NodeAllocatable | None = None


class CsiNodeSpec(Shape):
    drivers: list[CsiNodeDriver] | None = None


class CsiNode(AnyObject):
    spec: CsiNodeSpec | None = None


class CsiStorageCapacity(AnyObject):
    node_topology: LabelSelector | None = None
    storage_class_name: str | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class AttachmentSpec(Shape):
    attacher: str | None = None
    node_name: str | None = None
    source: Anything | None = None


class VolumeAttachment(AnyObject):
    spec: AttachmentSpec | None = None


def _claim_errors(claim: Claim) -> Errors:
    spec = claim.spec
    if spec is None:
        return [required("spec")]
    errors = _access_mode_errors(spec.access_modes)
    requests = (spec.resources.requests or {}) if spec.resources is not None else {}
    if "storage" not in requests:
        errors.append(required("spec.resources[storage]"))
    else:
        errors += _size_errors(requests["storage"], "spec.resources[storage]")
    errors += one_of("spec.volumeMode", spec.volume_mode, _VOLUME_MODES)
    return errors + label_selector_errors(spec.selector, "spec.selector") if spec.selector is not None else errors


def _access_mode_errors(modes: list[str] | None) -> Errors:
    if not modes:
        return [required("spec.accessModes", "at least 1 access mode is required")]
    errors = [not_supported("spec.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        errors.append(forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes"))
    return errors


def _size_errors(size: Quantity, path: str) -> Errors:
    if problem := amount_problem("storage", size):
        return [invalid(path, str(size), problem)]
    return [] if parse_quantity(size) > 0 else [invalid(path, str(size), "must be greater than zero")]


def _claim_update_errors(change: ObjectUpdate) -> Errors:
    old, new = dict_or_empty(change.old.get("spec")), dict(dict_or_empty(change.new.get("spec")))
    new["resources"] = old.get("resources")
    new["volumeAttributesClassName"] = old.get("volumeAttributesClassName")
    # Filled in once: by the binder, or when a default class appears.
    for once in ("volumeName", "storageClassName"):
        if old.get(once) in (None, ""):
            new[once] = old.get(once)
    if _set_fields(old) != _set_fields(new):
        return [forbidden("spec", _CLAIM_IS_IMMUTABLE)]
    return _shrink_errors(change)


def _set_fields(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if value is not None}


def _shrink_errors(change: ObjectUpdate) -> Errors:
    before, now = (nested(obj, "spec", "resources", "requests", "storage") for obj in (change.old, change.new))
    if before is None or now is None or before == now:
        return []
    capacity = nested(change.old, "status", "capacity", "storage")
    least = capacity if capacity is not None else before
    if _amount(now) < _amount(least):
        problem = (
            "field can not be less than status.capacity"
            if capacity is not None
            else "field can not be less than previous value"
        )
        return [forbidden("spec.resources.requests.storage", problem)]
    return []


def _amount(text: Any) -> Any:
    try:
        return parse_quantity(text)
    except (ValueError, TypeError):
        return 0


def _volume_errors(volume: PersistentVolume) -> Errors:
    spec = volume.spec
    if spec is None:
        return [required("spec")]
    errors = _access_mode_errors(spec.access_modes)
    if not spec.capacity:
        errors.append(required("spec.capacity"))
    elif "storage" not in spec.capacity:
        errors.append(not_supported("spec.capacity", sorted(spec.capacity), ("storage",)))
    else:
        errors += _size_errors(spec.capacity["storage"], "spec.capacity[storage]")
    policies = (*_RECLAIM_POLICIES, "Recycle")
    errors += one_of("spec.persistentVolumeReclaimPolicy", spec.persistent_volume_reclaim_policy, policies)
    errors += one_of("spec.volumeMode", spec.volume_mode, _VOLUME_MODES)
    if spec.node_affinity is not None:
        if spec.node_affinity.required is None:
            errors.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            errors += node_selector_errors(spec.node_affinity.required, "spec.nodeAffinity.required")
    return errors


def _volume_update_errors(change: ObjectUpdate) -> Errors:
    old, new = dict_or_empty(change.old.get("spec")), dict_or_empty(change.new.get("spec"))
    errors: Errors = []
    if _source(old) != _source(new):
        problem = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", problem))
    if old.get("volumeMode") != new.get("volumeMode"):
        errors.append(invalid("spec.volumeMode", new.get("volumeMode"), IMMUTABLE))
    return errors


def _source(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in _VOLUME_FIELDS}


def _storage_class_errors(storage_class: StorageClass) -> Errors:
    errors: Errors = [] if storage_class.provisioner else [required("provisioner")]
    errors += one_of("reclaimPolicy", storage_class.reclaim_policy, _RECLAIM_POLICIES)
    return errors + one_of("volumeBindingMode", storage_class.volume_binding_mode, _BINDING_MODES)


def _storage_class_update_errors(change: ObjectUpdate) -> Errors:
    errors = [
        forbidden(name, f"updates to {name} are forbidden.")
        for name in ("parameters", "provisioner", "reclaimPolicy")
        if (change.old.get(name) or None) != (change.new.get(name) or None)
    ]
    if change.before.volume_binding_mode != change.after.volume_binding_mode:
        errors.append(invalid("volumeBindingMode", change.after.volume_binding_mode, IMMUTABLE))
    return errors


def _csi_node_errors(node: CsiNode) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, driver in enumerate((node.spec.drivers or ()) if node.spec is not None else ()):
        place = f"spec.drivers[{index}]"
        if not driver.name:
            errors.append(required(f"{place}.name"))
        elif driver.name in seen:
            errors.append(duplicate(f"{place}.name", driver.name))
        seen.add(driver.name or "")
        if not driver.node_id:
            errors.append(required(f"{place}.nodeID"))
        if driver.allocatable is not None:
            errors += at_least(f"{place}.allocatable.count", driver.allocatable.count, 0)
    return errors


def _capacity_errors(capacity: CsiStorageCapacity) -> Errors:
    errors: Errors = [] if capacity.storage_class_name else [required("storageClassName")]
    for name, size in (("capacity", capacity.capacity), ("maximumVolumeSize", capacity.maximum_volume_size)):
        if size is not None and (problem := amount_problem("storage", size)):
            errors.append(invalid(name, str(size), problem))
    if capacity.node_topology is not None:
        errors += label_selector_errors(capacity.node_topology, "nodeTopology")
    return errors


def _attachment_errors(attachment: VolumeAttachment) -> Errors:
    spec = attachment.spec or AttachmentSpec()
    fields = (("attacher", spec.attacher), ("nodeName", spec.node_name), ("source", spec.source))
    return [required(f"spec.{name}") for name, value in fields if not value]


STORAGE_RULES: Final[Mapping[str, KindRules]] = {
    "PersistentVolumeClaim": KindRules(Claim, _claim_errors, update=_claim_update_errors),
    "PersistentVolume": KindRules(PersistentVolume, _volume_errors, update=_volume_update_errors),
    "StorageClass": KindRules(StorageClass, _storage_class_errors, update=_storage_class_update_errors),
    "CSINode": KindRules(CsiNode, _csi_node_errors),
    "CSIStorageCapacity": KindRules(CsiStorageCapacity, _capacity_errors),
    "VolumeAttachment": KindRules(VolumeAttachment, _attachment_errors),
}
