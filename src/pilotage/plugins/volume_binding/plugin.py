"""VolumeBinding: a pod goes where its volumes are or can be made, and its claims are bound before it is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

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
    PreBind,
    PreFilter,
    PreFlight,
    Reason,
    Reject,
    Rejection,
    Reserve,
    Resource,
    Score,
    Scores,
    Sees,
    Skip,
    StateKey,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.api.points import NothingBeforeScore
from pilotage.api.results import SKIP, SKIP_BESIDE_OTHERS
from pilotage.model import Pod
from pilotage.model.quantity import parse_quantity
from pilotage.model.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from pilotage.plugins.args import VolumeBindingArgs
from pilotage.plugins.pod_volumes import has_claims, uses_claim
from pilotage.plugins.volume_binding.binding import VolumeBinder
from pilotage.plugins.volume_binding.catalog import VolumeCatalog
from pilotage.plugins.volume_binding.claims import sorted_claims
from pilotage.plugins.volume_binding.finding import NO_VOLUME, NODE_CONFLICT, VolumeFinder
from pilotage.plugins.volume_binding.reservation import AssumedVolumes, release, reserve
from pilotage.plugins.volume_binding.scoring import capacity_score
from pilotage.plugins.volume_binding.shared_answers import SharedAnswers

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


_NO_CLAIMS: Final = "no claims"
_FINDER = StateKey[VolumeFinder]("VolumeBinding/finder")
_RESERVATION = StateKey[AssumedVolumes]("VolumeBinding/reservation")


class VolumeBinding(
    VolumeHints, PreFilter, Filter, VectorFilter, NothingBeforeScore, Score, VectorScore, Reserve, PreBind
):
    name = "VolumeBinding"
    filter_sees = Sees.NODE
    score_sees = Sees.NODE
    args_type: ClassVar[type | None] = VolumeBindingArgs

    def __init__(self, handle: Handle, args: VolumeBindingArgs) -> None:
        self._handle = handle
        self._args = args
        self._score_of = None if args.shape is None else capacity_score(args.shape)
        self._shared = SharedAnswers(self._score_of)

    def sign(self, pod: Pod) -> Hashable | None:
        return None if has_claims(pod) else _NO_CLAIMS

    def may_filter(self, pod: Pod) -> bool:
        return has_claims(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Rejection | None:
        if not self.may_filter(pod):
            return SKIP
        catalog = self._handle.index(VolumeCatalog)
        claims = sorted_claims(self._handle, catalog, pod)
        if isinstance(claims, Reason):
            return Reject(claims)
        state[_FINDER] = VolumeFinder(self._handle, catalog, claims, state.budget)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        reasons = state[_FINDER].reasons(node)
        return Reject(*reasons) if reasons else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        finder = state[_FINDER]
        conflict, missing = finder.bound_rejections(nodes)
        if conflict is not None:
            yield conflict, NODE_CONFLICT
        if finder.claims.delayed:
            shared = self._shared.rejections(finder, nodes)
            yield from finder.unbound_rejections(nodes) if shared is None else shared
        if missing is not None:
            yield missing, NO_VOLUME

    def may_score(self, pod: Pod) -> bool:
        return self._score_of is not None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        finder = state.get(_FINDER)
        return 0 if finder is None or self._score_of is None else self._score_of(finder.found(node.labels))

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        finder = state.get(_FINDER)
        if finder is None or self._score_of is None or not finder.claims.delayed:
            return np.zeros(len(nodes), dtype=np.int64)
        shared = self._shared.scores(finder, nodes)
        return finder.spread(nodes, self._score_of) if shared is None else shared

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        finder = state.get(_FINDER)
        if finder is None or not finder.claims.delayed:
            return None
        node = self._handle.node(node_name)
        assert node is not None, "a pod is placed on a node that is there"
        with self._counting_errors("assume"):
            state[_RESERVATION] = reserve(self._handle.index(VolumeCatalog), finder.found(node.labels), node_name)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        reservation = state.get(_RESERVATION)
        if reservation is not None:
            release(self._handle.index(VolumeCatalog), reservation)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlight | Skip:
        return PreFlight(allow_parallel=True) if _RESERVATION in state else SKIP_BESIDE_OTHERS

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        reservation = state.get(_RESERVATION)
        if reservation is None:
            return None
        binder = VolumeBinder(self._handle, pod, node_name, reservation)
        with self._counting_errors("bind"):
            await binder.bind(self._args.bind_timeout_seconds)
        return None

    @contextmanager
    def _counting_errors(self, stage: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._handle.count("scheduler_volume_scheduling_stage_error_total", stage)
            raise
