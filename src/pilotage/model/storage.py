"""Storage: volumes, claims, classes, and what nodes and drivers can take."""

from __future__ import annotations

import msgspec

from pilotage.model.meta import ApiObject, ObjectReference, Shape, TimedCondition
from pilotage.model.quantity import Quantity
from pilotage.model.selectors import LabelSelector, NodeSelector
from pilotage.model.volumes import (
    AWSElasticBlockStore,
    AzureDisk,
    AzureFile,
    CinderVolume,
    GCEPersistentDisk,
    ISCSIVolume,
    PersistentVolumeClaimSpec,
    PortworxVolume,
    RBDVolume,
    VsphereVolume,
)


class CSIPersistentVolume(Shape, frozen=True):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = msgspec.field(default_factory=dict)


class PathVolume(Shape, frozen=True):
    """A directory of the node, as local or host path volume."""

    path: str = ""


class NFSVolume(Shape, frozen=True):
    server: str = ""
    path: str = ""
    read_only: bool = False


class VolumeNodeAffinity(Shape, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Shape, frozen=True):
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    mount_options: tuple[str, ...] = ()
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    nfs: NFSVolume | None = None
    local: PathVolume | None = None
    host_path: PathVolume | None = None


class PersistentVolumeStatus(Shape, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""


class PersistentVolume(ApiObject, frozen=True):
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(Shape, frozen=True):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)
    conditions: tuple[TimedCondition, ...] = ()
    current_volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(ApiObject, frozen=True):
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)


class TopologySelectorRequirement(Shape, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Shape, frozen=True):
    match_label_expressions: tuple[TopologySelectorRequirement, ...] = ()


class StorageClass(ApiObject, frozen=True):
    provisioner: str = ""
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Shape, frozen=True):
    count: int | None = None


class CSINodeDriver(Shape, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Shape, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiObject, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Shape, frozen=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()


class CSIDriver(ApiObject, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject, frozen=True):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Shape, frozen=True):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Shape, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Shape, frozen=True):
    attached: bool = False


class VolumeAttachment(ApiObject, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
