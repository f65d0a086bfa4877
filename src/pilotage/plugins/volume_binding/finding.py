"""Where the volumes of a pod are, or can be had.

Bound claims ask for the node affinity of their volumes: one mask for each. What unbound claims can get on a node
depends on nothing but the values of a few labels (those that volumes, storage classes and capacities mention), so it
is worked out once for each combination of values that occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pilotage.api import Budget, Handle, Mask, NodeTable, NodeView, Reason, Scores
from pilotage.change_log import ChangeLog
from pilotage.model.selectors import NodeSelector
from pilotage.model.storage import CSIDriver, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pilotage.plugins.in_tree_volumes import (
    CannotTranslate,
    InTreePlugin,
    MigratedPlugins,
    plugin_of,
    translated_affinity,
)
from pilotage.plugins.node_label_keys import NodeLabelKeys
from pilotage.plugins.pod_volumes import class_name_of
from pilotage.plugins.volume_binding.capacities import StorageCapacities
from pilotage.plugins.volume_binding.catalog import VolumeCatalog
from pilotage.plugins.volume_binding.claims import PodVolumeClaims, VolumeError
from pilotage.plugins.volume_binding.matching import requested_size, volume_for
from pilotage.plugins.volume_binding.topology import (
    Place,
    affinity_mask,
    affinity_matches,
    required_affinity,
    topologies_match,
)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_STEPS_PER_CLAIM: Final = 16

NODE_CONFLICT = Reason("VolumeNodeConflict", "node(s) didn't match PersistentVolume's node affinity", unresolvable=True)
BIND_CONFLICT = Reason(
    "VolumeBindConflict", "node(s) didn't find available persistent volumes to bind", unresolvable=True
)
NO_SPACE = Reason("NotEnoughStorage", "node(s) did not have enough free storage", unresolvable=True)
NO_VOLUME = Reason(
    "VolumeNotFound", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", unresolvable=True
)


class Provision(Struct, frozen=True):
    """A volume that is to be made, and the pool that it would be made from, if one is known."""

    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None = None


class Found(Struct, frozen=True):
    """What the unbound claims of a pod can get on a node."""

    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    provisions: tuple[Provision, ...] = ()
    rejection: Reason | None = None


_NOTHING = Found()


class VolumeFinder:
    """Answers for one pod, for the length of one attempt."""

    def __init__(self, handle: Handle, catalog: VolumeCatalog, claims: PodVolumeClaims, budget: Budget) -> None:
        self.claims = claims
        self._handle = handle
        self._catalog = catalog
        self._budget = budget
        self._capacities = handle.index(StorageCapacities)
        deciding, of_nodes = self._deciding_labels(), handle.index(NodeLabelKeys)
        self._has_one_key = len(deciding) == 1
        self.keys = tuple(sorted(key for key in deciding if key in of_nodes)) if len(deciding) > 1 else tuple(deciding)
        """The labels of nodes that decide what unbound claims can get; of many, those that nodes have."""
        self._found: dict[tuple[str | None, ...], Found] = {}
        self._selected = {c.annotations[SELECTED_NODE] for c in claims.delayed if SELECTED_NODE in c.annotations}

    # --- one node ----------------------------------------------------------------------------------------------

    def reasons(self, node: NodeView) -> list[Reason]:
        """Why the pod's volumes keep it off a node."""
        reasons = []
        bound = self._bound_problem(node)
        if bound is NODE_CONFLICT:
            reasons.append(bound)
        if self._selected - {node.name}:
            reasons.append(BIND_CONFLICT)
        elif (rejection := self.found(node.labels).rejection) is not None:
            reasons.append(rejection)
        if bound is NO_VOLUME:
            reasons.append(bound)
        return reasons

    def _bound_problem(self, node: NodeView) -> Reason | None:
        """Of the first bound claim whose volume is missing or out of reach."""
        for claim in self.claims.bound:
            self._budget.spend(_STEPS_PER_CLAIM)
            volume = self._catalog.volume(claim.spec.volume_name)
            if volume is None:
                return NO_VOLUME
            if not volume_reaches(self._handle, volume, node.name, node.labels):
                return NODE_CONFLICT
        return None

    def found(self, labels: Mapping[str, str]) -> Found:
        """What the unbound claims can get on a node with these labels."""
        if not self.claims.delayed:
            return _NOTHING
        key = tuple(labels.get(key) for key in self.keys)
        known = self._found.get(key)
        if known is None:
            known = self._found[key] = self._find(labels)
        return known

    def _find(self, labels: Mapping[str, str]) -> Found:
        bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
        to_make = [claim for claim in self.claims.delayed if SELECTED_NODE in claim.annotations]
        taken: set[str] = set()
        open_claims = [claim for claim in self.claims.delayed if SELECTED_NODE not in claim.annotations]
        for claim in sorted(open_claims, key=requested_size):
            self._budget.spend(_STEPS_PER_CLAIM)
            volume = volume_for(claim, self._catalog, labels, taken)
            if volume is None:
                to_make.append(claim)
            else:
                taken.add(volume.name)
                bindings.append((volume, claim))
        provisions = []
        for claim in to_make:
            self._budget.spend(_STEPS_PER_CLAIM)
            provision = self._provision(claim, labels)
            if isinstance(provision, Reason):
                return Found(rejection=provision)
            provisions.append(provision)
        return Found(tuple(bindings), tuple(provisions))

    def _provision(self, claim: PersistentVolumeClaim, labels: Mapping[str, str]) -> Provision | Reason:
        """Whether a volume can be made for a node with these labels."""
        storage_class = self._class_of(claim)
        if storage_class.provisioner in ("", _NO_PROVISIONER):
            return BIND_CONFLICT
        self._budget.spend(len(storage_class.allowed_topologies))
        if not topologies_match(storage_class.allowed_topologies, labels):
            return BIND_CONFLICT
        if not self._is_limited(claim, storage_class):
            return Provision(claim)
        capacity = self._capacities.enough_for(storage_class.name, requested_size(claim), labels)
        return NO_SPACE if capacity is None else Provision(claim, capacity)

    def _is_limited(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> bool:
        """Whether the driver says how much there is."""
        if "storage" not in claim.spec.resources.requests:
            return False
        driver: CSIDriver | None = self._handle.objects("CSIDriver").get(storage_class.provisioner)
        return driver is not None and bool(driver.spec.storage_capacity)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass:
        class_name = class_name_of(claim)
        storage_class: StorageClass | None = self._handle.objects("StorageClass").get(class_name)
        if storage_class is None:
            raise VolumeError(f'failed to find storage class "{class_name}"')
        return storage_class

    # --- all nodes ---------------------------------------------------------------------------------------------

    def bound_rejections(self, nodes: NodeTable) -> tuple[Mask | None, Mask | None]:
        """Where a bound volume is out of reach, and where (claims before it being fine) it does not exist."""
        conflict: Mask | None = None
        for claim in self.claims.bound:
            self._budget.spend(_STEPS_PER_CLAIM + len(nodes) // 8)
            volume = self._catalog.volume(claim.spec.volume_name)
            if volume is None:
                return conflict, nodes.everywhere(True) if conflict is None else ~conflict
            mask = reach_mask(self._handle, volume, nodes, conflict)
            if mask is not None:
                conflict = ~mask if conflict is None else conflict | ~mask
        return conflict, None

    def unbound_rejections(self, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        """Where unbound claims cannot get what they need, and why."""
        elsewhere = nodes.everywhere(False)
        for name in sorted(self._selected):
            elsewhere |= ~nodes.rows_of(frozenset((name,)))
        if self._selected:
            yield elsewhere, BIND_CONFLICT
            if elsewhere.all():
                return
        groups, answers = self._grouped(nodes)
        for reason in (BIND_CONFLICT, NO_SPACE):
            rejected = np.array([answer.rejection is reason for answer in answers], dtype=np.bool_)
            if rejected.any():
                yield rejected[groups] & ~elsewhere, reason

    def spread(self, nodes: NodeTable, value_of: Callable[[Found], int]) -> Scores:
        """A number for each node that depends on what the unbound claims can get there."""
        groups, answers = self._grouped(nodes)
        values: Scores = np.array([value_of(answer) for answer in answers], dtype=np.int64)[groups]
        return values

    def _grouped(self, nodes: NodeTable) -> tuple[NDArray[np.int64], list[Found]]:
        """A group for each node, and what the unbound claims can get in each group."""
        groups, members = grouped_rows(nodes, self.keys, self._budget)
        return groups, [self.found(nodes.node(int(row)).labels) for row in members]

    # --- what answers can be shared by ---------------------------------------------------------------------------

    @property
    def shape(self) -> Hashable | None:
        """Pods with equal shapes get the same; None if a claim has a past, or if more than one label decides."""
        if not self._has_one_key or self._selected:
            return None
        if any(self._catalog.claimed_by(class_name_of(claim), claim.key) for claim in self.claims.delayed):
            return None
        return tuple(_shape(claim) for claim in self.claims.delayed)

    @property
    def facts(self) -> tuple[object, ...]:
        """Objects that the answers for a shape depend on, besides volumes and capacities."""
        classes, drivers = self._handle.objects("StorageClass"), self._handle.objects("CSIDriver")
        found = [classes.get(class_name_of(claim)) for claim in self.claims.delayed]
        return (*found, *(None if each is None else drivers.get(each.provisioner) for each in found))

    @property
    def logs(self) -> tuple[ChangeLog[Place], ...]:
        """What has changed among volumes and capacities."""
        names = [class_name_of(claim) for claim in self.claims.delayed]
        return (*map(self._catalog.changes, names), *map(self._capacities.changes, names))

    def _deciding_labels(self) -> set[str]:
        keys: set[str] = set()
        for claim in self.claims.delayed:
            class_name = class_name_of(claim)
            keys.update(self._catalog.deciding_labels(class_name, claim.key))
            keys.update(self._capacities.deciding_labels(class_name))
            storage_class: StorageClass | None = self._handle.objects("StorageClass").get(class_name)
            for term in () if storage_class is None else storage_class.allowed_topologies:
                self._budget.spend(len(term.match_label_expressions))
                keys.update(requirement.key for requirement in term.match_label_expressions)
        return keys


def _shape(claim: PersistentVolumeClaim) -> Hashable:
    spec = claim.spec
    return (
        class_name_of(claim),
        spec.resources.requests.get("storage"),
        spec.access_modes,
        spec.volume_mode,
        spec.volume_attributes_class_name,
        None if spec.selector is None else msgspec.json.encode(spec.selector),
    )


def grouped_rows(
    nodes: NodeTable, keys: tuple[str, ...], budget: Budget
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes with equal values of these labels: a group for each row, and one row of each group."""
    if not len(nodes):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    code = np.zeros(len(nodes), dtype=np.int64)
    if not keys:
        return code, np.zeros(1, dtype=np.int64)
    for key in keys:
        budget.spend(len(nodes) // 2)
        codes, values = nodes.labels(key)
        # Codes are renumbered after each label, so that the product cannot outgrow an integer.
        code = np.unique(code * (len(values) + 1) + codes + 1, return_inverse=True)[1]
    _, members, groups = np.unique(code, return_index=True, return_inverse=True)
    return groups, members


def volume_reaches(handle: Handle, volume: PersistentVolume, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether the volume can be used on this node."""
    plugin = plugin_of(volume.spec)
    if plugin is not None and node_name in handle.index(MigratedPlugins).nodes_of(plugin):
        return affinity_matches(_in_terms_of_the_driver(volume, plugin), labels)
    return affinity_matches(required_affinity(volume), labels)


def reach_mask(handle: Handle, volume: PersistentVolume, nodes: NodeTable, rejected: Mask | None) -> Mask | None:
    """The nodes where the volume can be used; None for all of them. Of rejected nodes nothing is asked or said."""
    affinity, plugin = required_affinity(volume), plugin_of(volume.spec)
    plain = None if affinity is None else affinity_mask(affinity, nodes)
    if plugin is None:
        return plain
    migrated = nodes.rows_of(handle.index(MigratedPlugins).nodes_of(plugin))
    if rejected is not None:
        migrated &= ~rejected
    if not migrated.any():
        return plain
    translated = _in_terms_of_the_driver(volume, plugin)
    if translated == affinity:
        return plain
    everywhere = nodes.everywhere(True)
    there = everywhere if translated is None else affinity_mask(translated, nodes)
    return np.where(migrated, there, everywhere if plain is None else plain)


def _in_terms_of_the_driver(volume: PersistentVolume, plugin: InTreePlugin) -> NodeSelector | None:
    try:
        return translated_affinity(volume, plugin)
    except CannotTranslate as error:
        raise VolumeError(f"could not translate pv: {error}") from error
