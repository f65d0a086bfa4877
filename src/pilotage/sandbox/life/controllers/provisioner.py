"""The sandbox's own storage: its class and the volumes that are made for claims of such classes.

Any StorageClass with this provisioner is served. A volume that is made for a pod on a chosen node can be used where
that node's topology says: in its zone, or on the node alone if it is in no zone, or as the class asks by the parameter
`topologyKey`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pilotage.sandbox.life.controllers.volume_match import requested_storage, storage_class_of

Object: TypeAlias = dict[str, Any]

PROVISIONER: Final = "sandbox.pilotage.dev/volumes"

_ZONE: Final = "topology.kubernetes.io/zone"
_HOSTNAME: Final = "kubernetes.io/hostname"


def standard_storage_class() -> Object:
    """The class that a new sandbox starts with: the default one, binding when the first pod is placed."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def new_volume(claim: Object, storage_class: Object, node_labels: Mapping[str, str] | None) -> Object:
    """The volume for a claim, usable from the node with these labels (None: from everywhere)."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    volume_spec: Object = {
        "capacity": {"storage": requested_storage(claim)},
        "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class_of(claim),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "claimRef": claim_reference(claim),
        "csi": {"driver": PROVISIONER, "volumeHandle": name},
    }
    if spec.get("volumeAttributesClassName"):
        volume_spec["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    requirement = _where(storage_class, node_labels)
    if requirement is not None:
        volume_spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": volume_spec,
    }


def claim_reference(claim: Object) -> Object:
    """How a volume names its claim."""
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def _where(storage_class: Object, labels: Mapping[str, str] | None) -> Object | None:
    if labels is None:
        return None
    asked = (storage_class.get("parameters") or {}).get("topologyKey")
    for key in [asked] if asked else [_ZONE, _HOSTNAME]:
        if key in labels:
            return {"key": key, "operator": "In", "values": [labels[key]]}
    return None
