"""Volumes, claims, storage classes, CSI objects, and devices."""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.http.tables.cell_text import text
from pilotage.sandbox.http.tables.columns import Cells, PrintedKind, age_of, columns, name_of
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested

_UNSET: Final = "<unset>"
_ACCESS_MODES: Final = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _volume_cells(volume: Json, now: float) -> Cells:
    spec = dict_or_empty(volume.get("spec"))
    claim = dict_or_empty(spec.get("claimRef"))
    return [
        name_of(volume),
        text(nested(spec, "capacity", "storage")),
        _access_modes(spec.get("accessModes")),
        text(spec.get("persistentVolumeReclaimPolicy")),
        _phase(volume),
        f"{text(claim.get('namespace'))}/{text(claim.get('name'))}" if claim else "",
        _storage_class(volume, spec),
        text(spec.get("volumeAttributesClassName"), _UNSET),
        text(nested(volume, "status", "reason")),
        age_of(volume, now),
        text(spec.get("volumeMode"), _UNSET),
    ]


def _claim_cells(claim: Json, now: float) -> Cells:
    spec, status = dict_or_empty(claim.get("spec")), dict_or_empty(claim.get("status"))
    is_bound = bool(spec.get("volumeName"))
    return [
        name_of(claim),
        _phase(claim),
        text(spec.get("volumeName")),
        text(nested(status, "capacity", "storage")) if is_bound else "",
        _access_modes(status.get("accessModes")) if is_bound else "",
        _storage_class(claim, spec),
        text(spec.get("volumeAttributesClassName"), _UNSET),
        age_of(claim, now),
        text(spec.get("volumeMode"), _UNSET),
    ]


def _phase(obj: Json) -> str:
    is_going = nested(obj, "metadata", "deletionTimestamp") is not None
    return "Terminating" if is_going else text(nested(obj, "status", "phase"))


def _access_modes(modes: Any) -> str:
    given = modes if isinstance(modes, list) else []
    return ",".join(short for mode, short in _ACCESS_MODES if mode in given)


def _storage_class(obj: Json, spec: Json) -> str:
    annotations = dict_or_empty(nested(obj, "metadata", "annotations"))
    return text(annotations.get(_CLASS_ANNOTATION)) or text(spec.get("storageClassName"))


def _storage_class_cells(storage_class: Json, now: float) -> Cells:
    annotations = dict_or_empty(nested(storage_class, "metadata", "annotations"))
    is_default = any(annotations.get(name) == "true" for name in _DEFAULT_ANNOTATIONS)
    return [
        f"{name_of(storage_class)} (default)" if is_default else name_of(storage_class),
        text(storage_class.get("provisioner")),
        text(storage_class.get("reclaimPolicy"), "Delete"),
        text(storage_class.get("volumeBindingMode"), "Immediate"),
        storage_class.get("allowVolumeExpansion") is True,
        age_of(storage_class, now),
    ]


def _attributes_class_cells(attributes_class: Json, now: float) -> Cells:
    return [name_of(attributes_class), text(attributes_class.get("driverName")), age_of(attributes_class, now)]


def _csi_node_cells(node: Json, now: float) -> Cells:
    return [name_of(node), len(dicts_in(node.get("spec"), "drivers")), age_of(node, now)]


def _csi_driver_cells(driver: Json, now: float) -> Cells:
    spec = dict_or_empty(driver.get("spec"))
    audiences = [text(one.get("audience")) for one in dicts_in(spec, "tokenRequests")]
    modes = spec.get("volumeLifecycleModes")
    return [
        name_of(driver),
        spec.get("attachRequired") is not False,
        spec.get("podInfoOnMount") is True,
        spec.get("storageCapacity") is True,
        ",".join(audiences) or _UNSET,
        spec.get("requiresRepublish") is True,
        ",".join(map(text, modes)) if isinstance(modes, list) and modes else "<none>",
        age_of(driver, now),
    ]


def _capacity_cells(capacity: Json, now: float) -> Cells:
    return [name_of(capacity), text(capacity.get("storageClassName")), text(capacity.get("capacity"), _UNSET)]


def _attachment_cells(attachment: Json, now: float) -> Cells:
    spec = dict_or_empty(attachment.get("spec"))
    return [
        name_of(attachment),
        text(spec.get("attacher")),
        text(nested(spec, "source", "persistentVolumeName")),
        text(spec.get("nodeName")),
        nested(attachment, "status", "attached") is True,
        age_of(attachment, now),
    ]


def _resource_claim_cells(claim: Json, now: float) -> Cells:
    states = ["deleted"] if nested(claim, "metadata", "deletionTimestamp") is not None else []
    if nested(claim, "status", "allocation") is not None:
        states.append("allocated")
        if dicts_in(claim.get("status"), "reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return [name_of(claim), ",".join(states), age_of(claim, now)]


def _resource_slice_cells(resource_slice: Json, now: float) -> Cells:
    spec = dict_or_empty(resource_slice.get("spec"))
    return [
        name_of(resource_slice),
        text(spec.get("nodeName")),
        text(spec.get("driver")),
        text(nested(spec, "pool", "name")),
        age_of(resource_slice, now),
    ]


def _runtime_class_cells(runtime_class: Json, now: float) -> Cells:
    return [name_of(runtime_class), text(runtime_class.get("handler")), age_of(runtime_class, now)]


STORAGE: Final = {
    "PersistentVolume": PrintedKind(
        columns(
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            "VolumeMode*",
        ),
        _volume_cells,
    ),
    "PersistentVolumeClaim": PrintedKind(
        columns(
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            "VolumeMode*",
        ),
        _claim_cells,
    ),
    "StorageClass": PrintedKind(
        columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion:boolean", "Age"),
        _storage_class_cells,
    ),
    "VolumeAttributesClass": PrintedKind(columns("Name", "DriverName", "Age"), _attributes_class_cells),
    "CSINode": PrintedKind(columns("Name", "Drivers:integer", "Age"), _csi_node_cells),
    "CSIDriver": PrintedKind(
        columns(
            "Name",
            "AttachRequired:boolean",
            "PodInfoOnMount:boolean",
            "StorageCapacity:boolean",
            "TokenRequests",
            "RequiresRepublish:boolean",
            "Modes",
            "Age",
        ),
        _csi_driver_cells,
    ),
    "CSIStorageCapacity": PrintedKind(columns("Name", "StorageClassName", "Capacity"), _capacity_cells),
    "VolumeAttachment": PrintedKind(
        columns("Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"), _attachment_cells
    ),
    "ResourceClaim": PrintedKind(columns("Name", "State", "Age"), _resource_claim_cells),
    "ResourceSlice": PrintedKind(columns("Name", "Node", "Driver", "Pool", "Age"), _resource_slice_cells),
    "RuntimeClass": PrintedKind(columns("Name", "Handler", "Age"), _runtime_class_cells),
}
