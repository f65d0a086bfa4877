"""VolumeZone: a node must be in the zone and region of the volumes that the pod mounts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from pilotage.api import (
    Action,
    ClusterEvent,
    CycleState,
    Filter,
    Handle,
    Hint,
    NodeTable,
    NodeView,
    Plugin,
    PreFilter,
    Refusal,
    Resource,
    Skip,
    on_event,
)
from pilotage.api.results import SKIP
from pilotage.model import Pod
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from pilotage.plugins.pod_volumes import uses_claim

TOPOLOGY_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_NO_VOLUMES: Final = "no volumes"


class VolumeZone(Plugin, PreFilter, Filter):
    name = "VolumeZone"
    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def sign(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.volumes else _NO_VOLUMES

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Refusal | None:
        return SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        return None

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(Resource.STORAGE_CLASS, Action.ADD)
    def after_class_was_added(self, pod: Pod, old: None, new: StorageClass) -> Hint:
        return Hint.QUEUE if new.volume_binding_mode == "WaitForFirstConsumer" else Hint.SKIP

    @on_event(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE)
    def after_claim_change(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
        uses = uses_claim(pod, new.namespace, new.name, with_ephemeral=False)
        return Hint.QUEUE if uses else Hint.SKIP

    @on_event(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE)
    def after_volume_change(self, pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> Hint:
        helps = old is None or zones_of(old) != zones_of(new)
        return Hint.QUEUE if helps else Hint.SKIP


def zones_of(volume: PersistentVolume) -> dict[str, frozenset[str]]:
    """The zones and regions that a volume is in, by label."""
    labels = volume.labels
    return {key: frozenset(labels[key].split("__")) for key in TOPOLOGY_LABELS if key in labels}
