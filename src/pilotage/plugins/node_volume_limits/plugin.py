"""NodeVolumeLimits: a node can attach only so many volumes of each CSI driver."""

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
from pilotage.model.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from pilotage.plugins.in_tree_volumes import inline_driver
from pilotage.plugins.pod_volumes import uses_claim

_NO_VOLUMES: Final = "no volumes"


class NodeVolumeLimits(Plugin, PreFilter, Filter):
    name = "NodeVolumeLimits"
    always_queue_on = (ClusterEvent(Resource.CSI_NODE, Action.ADD),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def sign(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.volumes else _NO_VOLUMES

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Refusal | None:
        return None if _has_attachable_volumes(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        return None

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(Resource.CSI_NODE, Action.UPDATE)
    def after_limits_changed(self, pod: Pod, old: CSINode, new: CSINode) -> Hint:
        before = _limits(old)
        grew = any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())
        return Hint.QUEUE if grew else Hint.SKIP

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_was_deleted(self, pod: Pod, old: Pod, new: None) -> Hint:
        had_a_place = old.node_name or old.status.nominated_node_name
        return Hint.QUEUE if had_a_place and _has_attachable_volumes(old) else Hint.SKIP

    @on_event(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
    def after_claim_was_added(self, pod: Pod, old: None, new: PersistentVolumeClaim) -> Hint:
        return Hint.QUEUE if uses_claim(pod, new.namespace, new.name) else Hint.SKIP

    @on_event(Resource.VOLUME_ATTACHMENT, Action.DELETE)
    def after_volume_was_detached(self, pod: Pod, old: VolumeAttachment, new: None) -> Hint:
        helps = any(
            volume.persistent_volume_claim is not None or inline_driver(volume) == old.spec.attacher
            for volume in pod.spec.volumes
        )
        return Hint.QUEUE if helps else Hint.SKIP


def _has_attachable_volumes(pod: Pod) -> bool:
    return any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or inline_driver(volume) is not None
        for volume in pod.spec.volumes
    )


def _limits(node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
