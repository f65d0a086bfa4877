"""Inline disks that two pods cannot use on one node, because the disk has one writer or one user at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from pilotage.api import Budget, ClusterIndex
from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec
from pilotage.model.volumes import Volume

_MEMO: Final = "disk conflicts: disks"
_ANYWHERE: Final = frozenset({""})
"""The monitors of disks that have none."""


class Use(Struct, frozen=True):
    """How a pod uses a disk: by which monitors it writes to it, and by which it uses it at all."""

    written: frozenset[str]
    used: frozenset[str]

    def and_also(self, other: Use) -> Use:
        return Use(self.written | other.written, self.used | other.used)

    def excludes(self, other: Use) -> bool:
        """One of the two writes where the other is, too."""
        return not self.written.isdisjoint(other.used) or not self.used.isdisjoint(other.written)


def exclusive_disks(spec: PodSpec) -> Mapping[Hashable, Use]:
    """The disks of a pod that can be in conflict with those of another, each once."""
    if not spec.volumes:
        return {}
    known: dict[Hashable, Use] | None = spec.memo.get(_MEMO)
    if known is None:
        known = {}
        for volume in spec.volumes:
            for disk, use in _uses(volume):
                known[disk] = known[disk].and_also(use) if disk in known else use
        spec.memo[_MEMO] = known
    return known


def disks_conflict(spec: PodSpec, other: PodSpec) -> bool:
    """Whether any disk of one pod excludes one of the other."""
    few, many = sorted((exclusive_disks(spec), exclusive_disks(other)), key=len)
    return any(disk in many and use.excludes(many[disk]) for disk, use in few.items())


class DisksInUse(ClusterIndex):
    """Which nodes use which disks: a pod is compared with those that name the same disk, not with all pods."""

    def __init__(self) -> None:
        self._users: dict[Hashable, dict[str, tuple[Use, str]]] = {}
        """Disk -> pod UID -> how the pod uses it, and its node."""

    def pod_added(self, pod: Pod, node_name: str) -> None:
        for disk, use in exclusive_disks(pod.spec).items():
            self._users.setdefault(disk, {})[pod.uid] = (use, node_name)

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        for disk in exclusive_disks(pod.spec):
            users = self._users.get(disk, {})
            users.pop(pod.uid, None)
            if not users:
                self._users.pop(disk, None)

    def nodes_in_conflict(self, spec: PodSpec, budget: Budget) -> frozenset[str]:
        """The nodes with a pod whose disks exclude this pod's."""
        found: set[str] = set()
        for disk, use in exclusive_disks(spec).items():
            users = self._users.get(disk, {})
            budget.spend(1 + len(users))
            found.update(node_name for other, node_name in users.values() if use.excludes(other))
        return frozenset(found)


def _uses(volume: Volume) -> Iterator[tuple[Hashable, Use]]:
    """The disks of a volume. One that is only read may be shared with others who only read it."""
    if (gce := volume.gce_persistent_disk) is not None:
        yield ("gce", gce.pd_name), _use(_ANYWHERE, gce.read_only)
    if (ebs := volume.aws_elastic_block_store) is not None:
        yield ("ebs", ebs.volume_id), _use(_ANYWHERE, False)
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", iscsi.iqn), _use(_ANYWHERE, iscsi.read_only)
    if (rbd := volume.rbd) is not None:
        # The same image of two clusters are two disks: they have no monitor in common.
        yield ("rbd", rbd.pool, rbd.image), _use(frozenset(rbd.monitors), rbd.read_only)


def _use(where: frozenset[str], read_only: bool | None) -> Use:
    return Use(frozenset() if read_only else where, where)
