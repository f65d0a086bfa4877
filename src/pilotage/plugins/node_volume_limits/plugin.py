"""NodeVolumeLimits: a node can attach only so many volumes of each CSI driver."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import product
from typing import ClassVar, Final

from pilotage.api import (
    Action,
    Budget,
    ClusterEvent,
    CycleState,
    Filter,
    Handle,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Resource,
    VectorFilter,
    on_event,
)
from pilotage.api.points import NothingBeforeFilter
from pilotage.model import Pod
from pilotage.model.storage import CSIDriver, CSINode, PersistentVolumeClaim, VolumeAttachment
from pilotage.plugins.in_tree_volumes import InTreePlugin, MigratedPlugins, counts_as_csi, inline_driver
from pilotage.plugins.node_volume_limits.attachments import AttachedVolumes, InstalledDrivers, limits_of
from pilotage.plugins.node_volume_limits.volumes import (
    CannotCount,
    ClaimMissing,
    Volumes,
    attached_by,
    has_attachable_volumes,
    plugins_in,
)
from pilotage.plugins.pod_volumes import uses_claim

_NO_VOLUMES: Final = "no volumes"
_TOO_MANY = Reason("TooManyVolumes", "node(s) exceed max volume count")


class NodeVolumeLimits(Plugin, NothingBeforeFilter, Filter, VectorFilter):
    name = "NodeVolumeLimits"
    pure_hints: ClassVar[bool] = True
    always_queue_on = (ClusterEvent(Resource.CSI_NODE, Action.ADD),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def sign(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.volumes else _NO_VOLUMES

    def may_filter(self, pod: Pod) -> bool:
        return has_attachable_volumes(pod)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        state.budget.spend(len(pod.spec.volumes))
        csi_node: CSINode | None = self._handle.objects("CSINode").get(node.name)
        try:
            new = attached_by(pod, self._handle.objects, lambda plugin: counts_as_csi(plugin, csi_node), is_new=True)
        except ClaimMissing as error:
            return Reject(_missing(error))
        if not new:
            return None
        for driver in self._indispensable(new):
            if node.name not in self._handle.index(InstalledDrivers).nodes_of(driver):
                return Reject(_not_installed(driver))
        if not limits_of(csi_node):
            return None
        usage = self._handle.index(AttachedVolumes).usage_with(node.name, node.pods)
        if usage.problem:
            raise CannotCount(usage.problem)
        return Reject(_TOO_MANY) if usage.exceeds(new) else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        try:
            plugins = tuple(plugins_in(pod, self._handle.objects))
            for migrated in product((False, True), repeat=len(plugins)):
                state.budget.spend(len(pod.spec.volumes))
                view = dict(zip(plugins, migrated, strict=True))
                concerned = self._with_view(nodes, view)
                if not concerned.any():
                    continue
                new = attached_by(pod, self._handle.objects, view.__getitem__, is_new=True)
                if new:
                    yield from self._rejected(new, nodes, concerned, state.budget)
        except ClaimMissing as error:
            yield nodes.everywhere(True), _missing(error)

    def _rejected(
        self, new: Volumes, nodes: NodeTable, concerned: Mask, budget: Budget
    ) -> Iterator[tuple[Mask, Reason]]:
        """What is rejected among the nodes that would have to attach these volumes."""
        for driver in self._indispensable(new):
            budget.spend(len(nodes) // 8)
            lacking = concerned & ~nodes.rows_of(self._handle.index(InstalledDrivers).nodes_of(driver))
            if lacking.any():
                yield lacking, _not_installed(driver)
                concerned = concerned & ~lacking
        attached = self._handle.index(AttachedVolumes)
        problems = attached.problems()
        if problems:
            uncountable = concerned & nodes.rows_of(frozenset(problems))
            if uncountable.any():
                raise CannotCount(problems[nodes.names[int(uncountable.argmax())]])
        full = attached.too_full_for(new, budget)
        if full:
            yield concerned & nodes.rows_of(full), _TOO_MANY

    def _with_view(self, nodes: NodeTable, view: dict[InTreePlugin, bool]) -> Mask:
        """The nodes where just these in-tree plugins count as CSI drivers."""
        mask = nodes.everywhere(True)
        for plugin, migrated in view.items():
            moved = nodes.rows_of(self._handle.index(MigratedPlugins).nodes_counting(plugin))
            mask &= moved if migrated else ~moved
        return mask

    def _indispensable(self, new: Volumes) -> list[str]:
        """Drivers without which a node is not even to be considered."""
        drivers = self._handle.objects("CSIDriver")
        found = []
        for name in dict.fromkeys(new.values()):
            driver: CSIDriver | None = drivers.get(name)
            if driver is not None and driver.spec.prevent_pod_scheduling_if_missing:
                found.append(name)
        return found

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(Resource.CSI_NODE, Action.UPDATE)
    def after_limits_changed(self, pod: Pod, old: CSINode, new: CSINode) -> Hint:
        before = limits_of(old)
        grew = any(limit > before.get(driver, 0) for driver, limit in limits_of(new).items())
        return Hint.QUEUE if grew else Hint.SKIP

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_was_deleted(self, pod: Pod, old: Pod, new: None) -> Hint:
        had_a_place = old.node_name or old.status.nominated_node_name
        return Hint.QUEUE if had_a_place and has_attachable_volumes(old) else Hint.SKIP

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


def _missing(error: ClaimMissing) -> Reason:
    return Reason("ClaimNotFound", str(error), unresolvable=True)


def _not_installed(driver: str) -> Reason:
    return Reason("DriverNotInstalled", f"{driver} CSI driver is not installed on the node")
