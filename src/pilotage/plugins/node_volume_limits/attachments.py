"""How many volumes of each driver are attached to each node, and how many more it can take.

Kept as pods and objects change: whatever a change may concern is marked, and counted anew on request. Nodes
are filed by the number of volumes that they can still take, so that the ones that are too full are found without
looking at the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from msgspec import Struct, field

from pilotage.api import Budget, ClusterIndex
from pilotage.model import Pod
from pilotage.model.storage import CSINode
from pilotage.plugins.claims_in_use import ClaimsInUse
from pilotage.plugins.in_tree_volumes import InTreePlugin, counts_as_csi
from pilotage.plugins.node_volume_limits.volumes import CannotCount, Volumes, attached_by, has_attachable_volumes

K = TypeVar("K", str, int)


class Usage(Struct, frozen=True):
    """What is attached to a node, by driver, and what it can take."""

    by_pods: Volumes = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    """Why the volumes of its pods cannot be counted; "" if they can."""

    def exceeds(self, new: Volumes) -> bool:
        """Whether these volumes would be too many."""
        wanted = Counter(driver for volume, driver in new.items() if volume not in self.by_pods)
        return any(
            driver in self.limits and self.counts.get(driver, 0) + number > self.limits[driver]
            for driver, number in wanted.items()
        )


class AttachedVolumes(ClusterIndex):
    kinds: ClassVar[frozenset[str]] = frozenset(
        {"PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "VolumeAttachment"}
    )

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Any]] = {kind: {} for kind in self.kinds}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._claims = ClaimsInUse()
        self._claims_on: dict[str, dict[str, None]] = {}
        """Volume name -> keys of the claims that are bound to it."""
        self._attachments: dict[str, dict[str, Any]] = {}
        """Node -> its VolumeAttachments by name."""
        self._attached_on: dict[str, Counter[str]] = {}
        """Volume name -> nodes with a VolumeAttachment of it."""
        self._marked: dict[str, None] = {}
        self._usage: dict[str, Usage] = {}
        self._by_room: dict[str, dict[int, dict[str, None]]] = {}
        """Driver -> how many volumes more -> nodes."""
        self._users: dict[str, dict[str, None]] = {}
        """Volume -> nodes with a pod that uses it."""
        self._problems: dict[str, str] = {}
        """Nodes with limits whose pods have volumes that cannot be counted."""

    # --- what changes ------------------------------------------------------------------------------------------

    def pod_added(self, pod: Pod, node_name: str) -> None:
        if has_attachable_volumes(pod):
            self._pods.setdefault(node_name, {})[pod.uid] = pod
            self._claims.pod_added(pod, node_name)
            self._marked[node_name] = None

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        if has_attachable_volumes(pod):
            _take_out(self._pods, node_name, pod.uid)
            self._claims.pod_removed(pod, node_name)
            self._marked[node_name] = None

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        if old is not None:
            self._unlink(kind, old)
        self._objects[kind][new.key] = new
        if kind == "PersistentVolumeClaim" and new.spec.volume_name:
            self._claims_on.setdefault(new.spec.volume_name, {})[new.key] = None
        elif kind == "VolumeAttachment":
            self._attachments.setdefault(new.spec.node_name, {})[new.name] = new
            if new.spec.source.persistent_volume_name is not None:
                nodes = self._attached_on.setdefault(new.spec.source.persistent_volume_name, Counter())
                nodes[new.spec.node_name] += 1
        self._mark(kind, new)

    def object_removed(self, kind: str, obj: Any) -> None:
        self._mark(kind, obj)
        self._unlink(kind, obj)
        self._objects[kind].pop(obj.key, None)

    def _unlink(self, kind: str, old: Any) -> None:
        self._mark(kind, old)
        if kind == "PersistentVolumeClaim":
            _take_out(self._claims_on, old.spec.volume_name, old.key)
        elif kind == "VolumeAttachment":
            _take_out(self._attachments, old.spec.node_name, old.name)
            volume = old.spec.source.persistent_volume_name
            if volume is not None:
                attached = self._attached_on[volume]
                attached[old.spec.node_name] -= 1
                if attached[old.spec.node_name] <= 0:
                    _take_out(self._attached_on, volume, old.spec.node_name)

    def _mark(self, kind: str, obj: Any) -> None:
        """Mark the nodes whose count may depend on this object."""
        if kind == "PersistentVolumeClaim":
            self._marked.update(dict.fromkeys(self._claims.nodes_of(obj.key)))
        elif kind == "PersistentVolume":
            for claim_key in self._claims_on.get(obj.name, ()):
                self._marked.update(dict.fromkeys(self._claims.nodes_of(claim_key)))
            self._marked.update(dict.fromkeys(self._attached_on.get(obj.name, ())))
        elif kind == "StorageClass":
            self._marked.update(dict.fromkeys(self._pods))
        elif kind == "CSINode":
            self._marked[obj.name] = None
        elif kind == "VolumeAttachment":
            self._marked[obj.spec.node_name] = None

    # --- what is asked -----------------------------------------------------------------------------------------

    def too_full_for(self, new: Volumes, budget: Budget) -> frozenset[str]:
        """The nodes that cannot take these volumes."""
        self._count_marked()
        full: dict[str, None] = {}
        for driver, wanted in Counter(new.values()).items():
            budget.spend()
            for room, nodes in self._by_room.get(driver, {}).items():
                if room < wanted:
                    full.update(nodes)
        if not full:
            return frozenset()
        # A volume that a pod of the node uses already needs no room.
        sharing = {node: None for volume in new for node in self._users.get(volume, ()) if node in full}
        budget.spend(len(new) + len(sharing) * len(new))
        return frozenset(node for node in full if node not in sharing or self._usage[node].exceeds(new))

    def problems(self) -> Mapping[str, str]:
        """The nodes with limits whose number of volumes is unknown, and why."""
        self._count_marked()
        return self._problems

    def usage_with(self, node_name: str, pods: Iterable[Pod]) -> Usage:
        """What would be attached to a node if these were its pods."""
        node: CSINode | None = self._objects["CSINode"].get(node_name)

        def counts(plugin: InTreePlugin) -> bool:
            return counts_as_csi(plugin, node)

        by_pods: Volumes = {}
        problem = ""
        for pod in pods:
            if pod.spec.volumes:
                try:
                    by_pods.update(attached_by(pod, self._objects.__getitem__, counts, is_new=False))
                except CannotCount as error:
                    problem = str(error)
        attached = Counter(by_pods.values())
        for volume, driver in self._attached_otherwise(node_name).items():
            if volume not in by_pods:
                attached[driver] += 1
        return Usage(by_pods, attached, limits_of(node), problem)

    def _attached_otherwise(self, node_name: str) -> Volumes:
        """Volumes that are attached according to the API server, whether or not a pod still needs them."""
        found: Volumes = {}
        volumes = self._objects["PersistentVolume"]
        for attachment in self._attachments.get(node_name, {}).values():
            volume = volumes.get(attachment.spec.source.persistent_volume_name or "")
            attacher = attachment.spec.attacher
            # As in kube-scheduler, volumes of in-tree plugins do not count here, however they were attached.
            if attacher and volume is not None and volume.spec.csi is not None:
                found[f"{attacher}/{volume.spec.csi.volume_handle}"] = attacher
        return found

    def _count_marked(self) -> None:
        for node_name in self._marked:
            self._refile(node_name, self.usage_with(node_name, self._pods.get(node_name, {}).values()))
        self._marked.clear()

    def _refile(self, node_name: str, usage: Usage) -> None:
        old = self._usage.get(node_name, Usage())
        for driver, room in _room(old).items():
            _take_out(self._by_room[driver], room, node_name)
        for volume in old.by_pods:
            _take_out(self._users, volume, node_name)
        for driver, room in _room(usage).items():
            self._by_room.setdefault(driver, {}).setdefault(room, {})[node_name] = None
        for volume in usage.by_pods:
            self._users.setdefault(volume, {})[node_name] = None
        self._problems.pop(node_name, None)
        if usage.problem and usage.limits:
            self._problems[node_name] = usage.problem
        self._usage[node_name] = usage


def limits_of(node: CSINode | None) -> dict[str, int]:
    """How many volumes of each driver a node can attach; a driver that says nothing has no limit."""
    return {
        driver.name: driver.allocatable.count
        for driver in (node.spec.drivers if node is not None else ())
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _take_out(filed: dict[K, Any], under: K, key: str) -> None:
    """Take an entry out of what is filed under something; nothing is kept under what has no entries left."""
    entries = filed.get(under)
    if entries is not None:
        entries.pop(key, None)
        if not entries:
            del filed[under]


def _room(usage: Usage) -> dict[str, int]:
    return {driver: limit - usage.counts.get(driver, 0) for driver, limit in usage.limits.items()}


class InstalledDrivers(ClusterIndex):
    kinds = frozenset({"CSINode"})

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, None]] = {}
        self._frozen: dict[str, frozenset[str]] = {}

    def object_put(self, kind: str, old: CSINode | None, new: CSINode) -> None:
        if old is not None:
            self.object_removed(kind, old)
        for driver in new.spec.drivers:
            self._nodes.setdefault(driver.name, {})[new.name] = None
            self._frozen.pop(driver.name, None)

    def object_removed(self, kind: str, obj: CSINode) -> None:
        for driver in obj.spec.drivers:
            self._nodes[driver.name].pop(obj.name, None)
            self._frozen.pop(driver.name, None)

    def nodes_of(self, driver: str) -> frozenset[str]:
        known = self._frozen.get(driver)
        if known is None:
            known = self._frozen[driver] = frozenset(self._nodes.get(driver, ()))
        return known
