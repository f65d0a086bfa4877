"""What may help a pod whose volumes stood in the way."""

from __future__ import annotations

from typing import ClassVar, Final

from pilotage.api import Action, ClusterEvent, Hint, Plugin, Resource, on_event
from pilotage.model import Pod
from pilotage.model.quantity import parse_quantity
from pilotage.model.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from pilotage.plugins.pod_volumes import uses_claim

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"


class VolumeHints(Plugin):
    """The events and hints of VolumeBinding."""

    pure_hints: ClassVar[bool] = True
    always_queue_on = (
        ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE),
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    )

    @on_event(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE)
    def after_class_change(self, pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
        helps = old is None or old.allowed_topologies != new.allowed_topologies
        return Hint.QUEUE if helps else Hint.SKIP

    @on_event(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE)
    def after_claim_change(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
        return Hint.QUEUE if uses_claim(pod, new.namespace, new.name) else Hint.SKIP

    @on_event(Resource.CSI_NODE, Action.ADD | Action.UPDATE)
    def after_csi_node_change(self, pod: Pod, old: CSINode | None, new: CSINode) -> Hint:
        helps = old is None or _migrated(old) != _migrated(new)
        return Hint.QUEUE if helps else Hint.SKIP

    @on_event(Resource.CSI_DRIVER, Action.UPDATE)
    def after_driver_change(self, pod: Pod, old: CSIDriver, new: CSIDriver) -> Hint:
        uses = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
        stopped_counting = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
        return Hint.QUEUE if uses and stopped_counting else Hint.SKIP

    @on_event(Resource.CSI_STORAGE_CAPACITY, Action.ADD | Action.UPDATE)
    def after_capacity_change(self, pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> Hint:
        if old is None:
            return Hint.QUEUE
        before, now = _largest_volume(old), _largest_volume(new)
        grew = now is not None and (before is None or parse_quantity(now) > parse_quantity(before))
        return Hint.QUEUE if grew else Hint.SKIP


def _largest_volume(capacity: CSIStorageCapacity) -> str | int | float | None:
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity


def _migrated(node: CSINode) -> str:
    return node.annotations.get(MIGRATED_PLUGINS, "")
