"""Volumes of drivers that once were part of Kubernetes: which CSI driver serves them today, under which handle.

Kubernetes treats such a volume as if it had been written for the CSI driver, on nodes whose CSINode says that the old
plugin has been replaced. Only what decides placement is translated: driver, handle, and the labels of zones.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from pilotage.api import ClusterIndex
from pilotage.model.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from pilotage.model.storage import CSINode, PersistentVolume, PersistentVolumeSpec
from pilotage.model.volumes import Volume

_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_ANY: Final = ""
"""Stands for all nodes that have a CSINode."""
_UNKNOWN: Final = "UNSPECIFIED"


class CannotTranslate(Exception):
    """A volume that its CSI driver cannot serve; the text is kube-scheduler's."""


class InTreePlugin(Struct, frozen=True):
    """A former part of Kubernetes and its successor."""

    name: str
    driver: str
    zone_key: str = ""
    """The label under which the driver knows zones; "" if it knows none."""


_PLUGIN_OF_FIELD: Final = {
    "gce_persistent_disk": InTreePlugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "aws_elastic_block_store": InTreePlugin(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
    ),
    "azure_disk": InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "azure_file": InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com"),
    "cinder": InTreePlugin(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
    ),
    "vsphere_volume": InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    "portworx_volume": InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com"),
}
_BY_NAME: Final = {plugin.name: plugin for plugin in _PLUGIN_OF_FIELD.values()}
_NEVER_MIGRATED: Final = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""The scheduler does not take these for CSI volumes, whatever nodes say."""


def plugin_of(source: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """The in-tree plugin of an inline volume or a PersistentVolume; None for any other volume."""
    for field, plugin in _PLUGIN_OF_FIELD.items():
        if getattr(source, field) is not None:
            return plugin
    return None


def plugin_named(provisioner: str) -> InTreePlugin | None:
    return _BY_NAME.get(provisioner)


def inline_driver(volume: Volume) -> str | None:
    """The CSI driver of a pod's inline volume that used to be in-tree; None for any other volume."""
    plugin = plugin_of(volume)
    return None if plugin is None else plugin.driver


def is_migrated(plugin: InTreePlugin, node: CSINode | None) -> bool:
    """Whether the node serves this plugin's volumes by the CSI driver."""
    if node is None or plugin.name in _NEVER_MIGRATED:
        return False
    return plugin.name in migrated_plugins(node)


def counts_as_csi(plugin: InTreePlugin, node: CSINode | None) -> bool:
    """Whether this plugin's volumes count against the limits of the CSI driver on this node.

    The move is long over: it is enough that the node has any CSI driver at all.
    """
    return node is not None and plugin.name not in _NEVER_MIGRATED


def migrated_plugins(node: CSINode) -> frozenset[str]:
    return frozenset(node.annotations.get(_MIGRATED, "").split(",")) - {""}


class MigratedPlugins(ClusterIndex):
    """Which nodes serve the volumes of an in-tree plugin by its CSI driver."""

    kinds = frozenset({"CSINode"})

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, None]] = {_ANY: {}}
        self._frozen: dict[str, frozenset[str]] = {}

    def object_put(self, kind: str, old: CSINode | None, new: CSINode) -> None:
        if old is not None:
            if migrated_plugins(old) == migrated_plugins(new):
                return
            self.object_removed(kind, old)
        for plugin in (_ANY, *sorted(migrated_plugins(new) - _NEVER_MIGRATED)):
            self._nodes.setdefault(plugin, {})[new.name] = None
        self._frozen.clear()

    def object_removed(self, kind: str, obj: CSINode) -> None:
        for nodes in self._nodes.values():
            nodes.pop(obj.name, None)
        self._frozen.clear()

    def nodes_of(self, plugin: InTreePlugin) -> frozenset[str]:
        """The nodes for which `is_migrated` holds."""
        return self._known(plugin.name)

    def nodes_counting(self, plugin: InTreePlugin) -> frozenset[str]:
        """The nodes for which `counts_as_csi` holds."""
        return frozenset() if plugin.name in _NEVER_MIGRATED else self._known(_ANY)

    def _known(self, name: str) -> frozenset[str]:
        known = self._frozen.get(name)
        if known is None:
            known = self._frozen[name] = frozenset(self._nodes.get(name, ()))
        return known


# --- handles ---------------------------------------------------------------------------------------------------


def inline_handle(volume: Volume) -> str:
    """Under which handle the CSI driver knows a pod's inline volume."""
    if volume.gce_persistent_disk is not None:
        return f"projects/{_UNKNOWN}/zones/{_UNKNOWN}/disks/{volume.gce_persistent_disk.pd_name}"
    return _plain_handle(volume)


def volume_handle(volume: PersistentVolume) -> str:
    """Under which handle the CSI driver knows a PersistentVolume."""
    disk = volume.spec.gce_persistent_disk
    if disk is None:
        return _plain_handle(volume.spec)
    zones = (volume.labels.get(_BETA_ZONE) or volume.labels.get(_ZONE) or _UNKNOWN).split("__")
    if len(zones) == 1:
        return f"projects/{_UNKNOWN}/zones/{zones[0]}/disks/{disk.pd_name}"
    return f"projects/{_UNKNOWN}/regions/{_gce_region(zones)}/disks/{disk.pd_name}"


def _gce_region(zones: list[str]) -> str:
    """The region of a disk that is in several zones: us-east1 of us-east1-b and us-east1-c."""
    problem = "failed to get region from zones"
    regions: dict[str, None] = {}
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            expected = "expected: {locale}-{region}-{zone}"
            raise CannotTranslate(f"{problem}: zone in unexpected format, {expected}, got: {zone}")
        regions["-".join(parts[:2])] = None
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise CannotTranslate(f"{problem}: multiple or no regions gotten from zones, got: map[{found}]")
    return next(iter(regions))


def _plain_handle(source: Volume | PersistentVolumeSpec) -> str:
    if source.aws_elastic_block_store is not None:
        return _ebs_handle(source.aws_elastic_block_store.volume_id)
    if source.cinder is not None:
        return source.cinder.volume_id
    if source.azure_disk is not None:
        kind = source.azure_disk.kind
        if kind is not None and kind.lower() != "managed":
            raise CannotTranslate(f"kind({kind}) is not supported in csi migration")
        return source.azure_disk.disk_uri
    return source.portworx_volume.volume_id if source.portworx_volume is not None else ""


def _ebs_handle(volume_id: str) -> str:
    """Without the zone: "aws://us-east-1a/vol-1" and "vol-1" are the same volume."""
    if not volume_id.startswith("aws://"):
        return volume_id
    problem = "failed to translate Kubernetes ID to EBS Volume ID"
    try:
        handle = unquote(urlsplit(volume_id).path).strip("/")
    except ValueError as error:
        raise CannotTranslate(f"{problem} Invalid disk name ({volume_id}): {error}") from error
    if not handle.startswith("vol-") or "/" in handle:
        raise CannotTranslate(f"{problem} Invalid format for AWS volume ({volume_id})")
    return handle


# --- where a volume can be used --------------------------------------------------------------------------------


def translated_affinity(volume: PersistentVolume, plugin: InTreePlugin) -> NodeSelector | None:
    """The volume's node affinity in the labels of the CSI driver; CannotTranslate if it has no handle there."""
    volume_handle(volume)
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    if not plugin.zone_key:
        return required
    zone, region = _zone_and_region_labels(required, volume)
    if required is not None and _has_values(required, zone):
        required = _renamed(required, zone, plugin.zone_key)
    else:
        zones = {part.strip() for part in volume.labels.get(zone, "").split("__")} - {""}
        if zones:
            required = _narrowed(required, plugin.zone_key, tuple(sorted(zones)))
    if region == _BETA_REGION and required is not None and _has_values(required, _BETA_REGION):
        required = _renamed(required, _BETA_REGION, _REGION)
    return required


def _zone_and_region_labels(required: NodeSelector | None, volume: PersistentVolume) -> tuple[str, str]:
    """The pair of labels, old or new, in which the volume says where it is."""
    terms = () if required is None else required.node_selector_terms
    for names in ({r.key for term in terms for r in term.match_expressions}, volume.labels):
        if _ZONE in names:
            return _ZONE, _REGION
        if _BETA_ZONE in names:
            return _BETA_ZONE, _BETA_REGION
    return _ZONE, _REGION


def _has_values(selector: NodeSelector, key: str) -> bool:
    return any(r.key == key and r.values for term in selector.node_selector_terms for r in term.match_expressions)


def _renamed(selector: NodeSelector, old: str, new: str) -> NodeSelector:
    def rename(requirement: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return msgspec.structs.replace(requirement, key=new) if requirement.key == old else requirement

    return NodeSelector(
        tuple(
            NodeSelectorTerm(tuple(rename(r) for r in term.match_expressions), term.match_fields)
            for term in selector.node_selector_terms
        )
    )


def _narrowed(selector: NodeSelector | None, key: str, values: tuple[str, ...]) -> NodeSelector:
    """Every alternative with one more requirement."""
    zone = NodeSelectorRequirement(key, "In", values)
    terms = selector.node_selector_terms if selector is not None else ()
    if not terms:
        return NodeSelector((NodeSelectorTerm((zone,)),))
    return NodeSelector(tuple(NodeSelectorTerm((*t.match_expressions, zone), t.match_fields) for t in terms))
