"""VolumeZone: a node must be in the zone and region of the volumes that the pod mounts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np

from pilotage.api import (
    Action,
    ClusterEvent,
    CycleState,
    Filter,
    Handle,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    Plugin,
    PreFilter,
    Reason,
    Reject,
    Rejection,
    Resource,
    Sees,
    Skip,
    StateKey,
    VectorFilter,
    on_event,
)
from pilotage.api.results import SKIP
from pilotage.model import Pod
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from pilotage.plugins.pod_volumes import ClaimOfPod, claim_not_found, claims_of, class_name_of, uses_claim

TOPOLOGY_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_GA_LABEL: Final = dict(zip(TOPOLOGY_LABELS[:2], TOPOLOGY_LABELS[2:], strict=True))
_NO_VOLUMES: Final = "no volumes"


_CONFLICT = Reason("VolumeZoneConflict", "node(s) had no available volume zone", unresolvable=True)

Zones = tuple[tuple[str, frozenset[str]], ...]
"""Label keys with the values that a volume allows."""
_STATE = StateKey[Zones]("VolumeZone/zones of volumes")


class VolumeZone(Plugin, PreFilter, Filter, VectorFilter):
    name = "VolumeZone"
    filter_sees = Sees.NODE
    pure_hints = True
    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def sign(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.volumes else _NO_VOLUMES

    def may_filter(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Rejection | None:
        if not self.may_filter(pod):
            return SKIP
        zones: dict[tuple[str, frozenset[str]], None] = {}
        for claim in claims_of(pod):
            state.budget.spend()
            if claim.is_ephemeral:
                continue
            found = self._zones_of_claim(pod, claim)
            if isinstance(found, Reason):
                return Reject(found)
            zones.update(dict.fromkeys(found.items()))
        if not zones:
            return SKIP
        state[_STATE] = tuple(zones)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        labels = node.labels
        if not any(key in labels for key in TOPOLOGY_LABELS):
            return None
        state.budget.spend(len(state[_STATE]))
        for key, allowed in state[_STATE]:
            value = labels.get(key)
            if (labels.get(_GA_LABEL.get(key, key)) if value is None else value) not in allowed:
                return Reject(_CONFLICT)
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        has_label = nodes.everywhere(False)
        for key in TOPOLOGY_LABELS:
            has_label |= nodes.labels(key)[0] >= 0
        rejected = nodes.everywhere(False)
        for key, allowed in state[_STATE]:
            state.budget.spend(16 + len(nodes) // 8)
            fits = _in_zones(nodes, key, allowed)
            if key in _GA_LABEL:
                is_missing = nodes.labels(key)[0] < 0
                fits = np.where(is_missing, _in_zones(nodes, _GA_LABEL[key], allowed), fits)
            rejected |= ~fits
        yield rejected & has_label, _CONFLICT

    def _zones_of_claim(self, pod: Pod, used: ClaimOfPod) -> dict[str, frozenset[str]] | Reason:
        """The zones of the claim's volume (none for a volume that will be made for the pod), or what is wrong."""
        if not used.name:
            return _unresolvable("PersistentVolumeClaim had no name")
        claim: PersistentVolumeClaim | None = self._handle.objects("PersistentVolumeClaim").get(used.key(pod))
        if claim is None:
            return claim_not_found(used.name)
        if not claim.spec.volume_name:
            return self._without_volume(claim)
        volume: PersistentVolume | None = self._handle.objects("PersistentVolume").get(claim.spec.volume_name)
        if volume is None:
            return _unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
        return zones_of(volume)

    def _without_volume(self, claim: PersistentVolumeClaim) -> dict[str, frozenset[str]] | Reason:
        class_name = class_name_of(claim)
        if not class_name:
            return _unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class: StorageClass | None = self._handle.objects("StorageClass").get(class_name)
        if storage_class is None:
            return _unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
        if storage_class.volume_binding_mode is None:
            return _unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class.volume_binding_mode == "WaitForFirstConsumer":
            return {}
        return _unresolvable("PersistentVolume had no name")

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
    """The zones and regions that a volume is in, by label; a label with an empty part says nothing."""
    found = {}
    for key in TOPOLOGY_LABELS:
        parts = [part.strip() for part in volume.labels[key].split("__")] if key in volume.labels else []
        if parts and all(parts):
            found[key] = frozenset(parts)
    return found


def _in_zones(nodes: NodeTable, key: str, allowed: frozenset[str]) -> Mask:
    codes, values = nodes.labels(key)
    # The last entry answers for nodes without the label: their code is -1.
    return np.array([*(value in allowed for value in values), False], dtype=np.bool_)[codes]


def _unresolvable(message: str) -> Reason:
    return Reason("VolumeZoneUnknown", message, unresolvable=True)
