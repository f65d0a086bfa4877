"""Volumes of a pod, as far as scheduling reads them.

A pod's volumes are mostly config maps, secrets and tokens that no scheduling decision depends on; those are dropped
when a pod is decoded (the token volume has a random name and would make every pod's spec different).
"""

from __future__ import annotations

import msgspec

from pilotage.model.meta import ObjectMeta, Shape, TypedReference
from pilotage.model.quantity import Quantity
from pilotage.model.selectors import LabelSelector


class VolumeResources(Shape, frozen=True):
    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class PersistentVolumeClaimSpec(Shape, frozen=True):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    data_source: TypedReference | None = None
    data_source_ref: TypedReference | None = None


class ClaimTemplate(Shape, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class PersistentVolumeClaimVolume(Shape, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(Shape, frozen=True):
    volume_claim_template: ClaimTemplate | None = None


class CSIVolume(Shape, frozen=True):
    driver: str = ""
    read_only: bool | None = None


class GCEPersistentDisk(Shape, frozen=True):
    pd_name: str = ""
    partition: int = 0
    read_only: bool = False


class AWSElasticBlockStore(Shape, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    partition: int = 0
    read_only: bool = False


class ISCSIVolume(Shape, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class RBDVolume(Shape, frozen=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class AzureDisk(Shape, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool | None = None


class AzureFile(Shape, frozen=True):
    share_name: str = ""
    secret_name: str = ""
    read_only: bool = False


class CinderVolume(Shape, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class VsphereVolume(Shape, frozen=True):
    volume_path: str = ""


class PortworxVolume(Shape, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class ImageVolume(Shape, frozen=True):
    reference: str = ""
    pull_policy: str = ""


class Volume(Shape, frozen=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    csi: CSIVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    image: ImageVolume | None = None

    @property
    def matters(self) -> bool:
        """Whether a scheduling decision can depend on this volume."""
        return self != Volume(self.name)
