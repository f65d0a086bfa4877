"""Inline disks that two pods cannot use on one node, because the disk has one writer or one user at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from pilotage.api import ClusterIndex
from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec
from pilotage.model.volumes import Volume

_MEMO: Final = "disk conflicts: disks"


def exclusive_disks(spec: PodSpec) -> tuple[Volume, ...]:
    """The volumes of a pod that can be in conflict with those of another."""
    if not spec.volumes:
        return ()
    known: tuple[Volume, ...] | None = spec.memo.get(_MEMO)
    if known is None:
        known = spec.memo[_MEMO] = tuple(volume for volume in spec.volumes if next(_identities(volume), None))
    return known


def disks_conflict(spec: PodSpec, other: PodSpec) -> bool:
    """Does any disk of one pod exclude one of the other?"""
    mine = exclusive_disks(spec)
    return bool(mine) and any(_conflict(volume, disk) for disk in exclusive_disks(other) for volume in mine)


class DisksInUse(ClusterIndex):
    """Which nodes use which disks: a pod is compared with those that name the same disk, not with all pods."""

    def __init__(self) -> None:
        self._users: dict[Hashable, dict[str, tuple[Pod, str]]] = {}
        """Identity of the disk -> pod UID -> the pod and its node."""

    def pod_added(self, pod: Pod, node_name: str) -> None:
        for volume in exclusive_disks(pod.spec):
            for identity in _identities(volume):
                self._users.setdefault(identity, {})[pod.uid] = (pod, node_name)

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        for volume in exclusive_disks(pod.spec):
            for identity in _identities(volume):
                users = self._users.get(identity, {})
                users.pop(pod.uid, None)
                if not users:
                    self._users.pop(identity, None)

    def nodes_in_conflict(self, spec: PodSpec) -> frozenset[str]:
        """The nodes with a pod whose disks exclude this pod's."""
        identities = [identity for volume in exclusive_disks(spec) for identity in _identities(volume)]
        users = {uid: user for identity in identities for uid, user in self._users.get(identity, {}).items()}
        return frozenset(node_name for pod, node_name in users.values() if disks_conflict(spec, pod.spec))


def _identities(volume: Volume) -> Iterator[Hashable]:
    """What makes two disks the same, monitors of RBD aside."""
    if volume.gce_persistent_disk is not None:
        yield "gce", volume.gce_persistent_disk.pd_name
    if volume.aws_elastic_block_store is not None:
        yield "ebs", volume.aws_elastic_block_store.volume_id
    if volume.iscsi is not None:
        yield "iscsi", volume.iscsi.iqn
    if volume.rbd is not None:
        yield "rbd", volume.rbd.pool, volume.rbd.image


def _conflict(one: Volume, other: Volume) -> bool:
    return _gce(one, other) or _ebs(one, other) or _iscsi(one, other) or _rbd(one, other)


def _gce(one: Volume, other: Volume) -> bool:
    a, b = one.gce_persistent_disk, other.gce_persistent_disk
    return a is not None and b is not None and a.pd_name == b.pd_name and not (a.read_only and b.read_only)


def _ebs(one: Volume, other: Volume) -> bool:
    a, b = one.aws_elastic_block_store, other.aws_elastic_block_store
    return a is not None and b is not None and a.volume_id == b.volume_id


def _iscsi(one: Volume, other: Volume) -> bool:
    a, b = one.iscsi, other.iscsi
    return a is not None and b is not None and a.iqn == b.iqn and not (a.read_only and b.read_only)


def _rbd(one: Volume, other: Volume) -> bool:
    a, b = one.rbd, other.rbd
    if a is None or b is None or (a.read_only and b.read_only):
        return False
    return a.pool == b.pool and a.image == b.image and not set(a.monitors).isdisjoint(b.monitors)
