"""VolumeRestrictions: a disk that only one node or one pod may use at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from msgspec import Struct

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
    PreFilterExtensions,
    Reason,
    Reject,
    Rejection,
    Resource,
    Skip,
    StateKey,
    VectorFilter,
    on_event,
)
from pilotage.api.results import SKIP
from pilotage.model import Pod
from pilotage.model.storage import PersistentVolumeClaim
from pilotage.plugins.claims_in_use import ClaimsInUse
from pilotage.plugins.disk_conflicts import DisksInUse, disks_conflict, exclusive_disks
from pilotage.plugins.pod_volumes import claim_names, claim_not_found, claims_of, mounted, uses_claim

_NO_VOLUMES: Final = "no volumes"
_DISK = Reason("DiskConflict", "node(s) had no available disk")
_ONE_POD = Reason(
    "ReadWriteOncePodConflict",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)


class _Exclusive(Struct):
    """The pod's claims that only one pod may use, and how many uses by others stand against it."""

    claims: frozenset[str]
    conflicts: int

    def clone(self) -> _Exclusive:
        return _Exclusive(self.claims, self.conflicts)

    def uses_of(self, pod: Pod) -> int:
        # As in kube-scheduler the namespace is not looked at: only pods that share the claim are ever a way out.
        return sum(name in self.claims for name, is_ephemeral in mounted(pod.spec) if not is_ephemeral)


_STATE = StateKey[_Exclusive]("VolumeRestrictions/exclusive claims")


class VolumeRestrictions(Plugin, PreFilter, PreFilterExtensions, Filter, VectorFilter):
    name = "VolumeRestrictions"
    pure_hints = True
    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def sign(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.volumes else _NO_VOLUMES

    def may_filter(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Rejection | None:
        if not self.may_filter(pod):
            return SKIP
        known = self._handle.objects("PersistentVolumeClaim")
        exclusive = []
        for used in claims_of(pod):
            state.budget.spend()
            if used.is_ephemeral:
                continue
            claim: PersistentVolumeClaim | None = known.get(used.key(pod))
            if claim is None:
                return Reject(claim_not_found(used.name))
            if "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.append(used.name)
        conflicts = sum(self._is_in_use(f"{pod.namespace}/{name}") for name in dict.fromkeys(exclusive))
        if not conflicts and not exclusive_disks(pod.spec):
            return SKIP
        state[_STATE] = _Exclusive(frozenset(exclusive), conflicts)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        exclusive = state[_STATE]
        state.budget.spend(1 + len(added.spec.volumes))
        exclusive.conflicts += exclusive.uses_of(added)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        exclusive = state[_STATE]
        state.budget.spend(1 + len(removed.spec.volumes))
        exclusive.conflicts -= exclusive.uses_of(removed)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        disks = exclusive_disks(pod.spec)
        if disks:
            state.budget.spend(len(node.pods) + len(disks))
            if any(disks_conflict(pod.spec, other.spec) for other in node.pods):
                return Reject(_DISK)
        return Reject(_ONE_POD) if state[_STATE].conflicts > 0 else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        open_rows = nodes.everywhere(True)
        if exclusive_disks(pod.spec):
            taken = nodes.rows_of(self._handle.index(DisksInUse).nodes_in_conflict(pod.spec, state.budget))
            yield taken, _DISK
            open_rows = ~taken
        if state[_STATE].conflicts > 0:
            yield open_rows, _ONE_POD

    def _is_in_use(self, claim_key: str) -> bool:
        """By a pod on a node that exists."""
        nodes = self._handle.index(ClaimsInUse).nodes_of(claim_key)
        return any(self._handle.node(name) is not None for name in nodes)

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_was_deleted(self, pod: Pod, old: Pod, new: None) -> Hint:
        if old.namespace != pod.namespace:
            return Hint.SKIP
        shares = not claim_names(pod.spec).isdisjoint(claim_names(old.spec))
        return Hint.QUEUE if shares or disks_conflict(pod.spec, old.spec) else Hint.SKIP

    @on_event(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
    def after_claim_was_added(self, pod: Pod, old: None, new: PersistentVolumeClaim) -> Hint:
        uses = uses_claim(pod, new.namespace, new.name, with_ephemeral=False)
        return Hint.QUEUE if uses else Hint.SKIP
