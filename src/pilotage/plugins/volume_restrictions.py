"""VolumeRestrictions: a disk that only one node or one pod may use at a time."""

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
from pilotage.model.storage import PersistentVolumeClaim
from pilotage.plugins.disk_conflicts import disks_conflict
from pilotage.plugins.pod_volumes import claims_of, uses_claim

_NO_VOLUMES: Final = "no volumes"


class VolumeRestrictions(Plugin, PreFilter, Filter):
    name = "VolumeRestrictions"
    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def sign(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.volumes else _NO_VOLUMES

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Refusal | None:
        return SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        return None

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_was_deleted(self, pod: Pod, old: Pod, new: None) -> Hint:
        if old.namespace != pod.namespace:
            return Hint.SKIP
        mine = {claim.name for claim in claims_of(pod) if not claim.is_ephemeral}
        shares = any(claim.name in mine for claim in claims_of(old) if not claim.is_ephemeral)
        return Hint.QUEUE if shares or disks_conflict(pod.spec, old.spec) else Hint.SKIP

    @on_event(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
    def after_claim_was_added(self, pod: Pod, old: None, new: PersistentVolumeClaim) -> Hint:
        uses = uses_claim(pod, new.namespace, new.name, with_ephemeral=False)
        return Hint.QUEUE if uses else Hint.SKIP
