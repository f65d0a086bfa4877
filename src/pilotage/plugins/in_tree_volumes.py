"""Volumes of drivers that once were part of Kubernetes: which CSI driver serves them today, under which handle.

Kubernetes treats such a volume as if it had been written for the CSI driver. Only what decides placement is translated:
driver, handle, and the names under which zones are known.
"""

from __future__ import annotations

from typing import Final

from pilotage.model.volumes import Volume

_DRIVER_OF_FIELD: Final = {
    "gce_persistent_disk": "pd.csi.storage.gke.io",
    "aws_elastic_block_store": "ebs.csi.aws.com",
    "azure_disk": "disk.csi.azure.com",
    "azure_file": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "vsphere_volume": "csi.vsphere.vmware.com",
    "portworx_volume": "pxd.portworx.com",
}


def inline_driver(volume: Volume) -> str | None:
    """The CSI driver of a pod's inline volume that used to be in-tree; None for any other volume."""
    for field, driver in _DRIVER_OF_FIELD.items():
        if getattr(volume, field) is not None:
            return driver
    return None
