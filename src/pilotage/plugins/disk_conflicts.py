"""Inline disks that two pods cannot use on one node, because the disk has one writer or one user at a time."""

from __future__ import annotations

from typing import Final

from pilotage.model.pod_spec import PodSpec
from pilotage.model.volumes import Volume

_MEMO: Final = "disk conflicts: disks"


def exclusive_disks(spec: PodSpec) -> tuple[Volume, ...]:
    """The volumes of a pod that can be in conflict with those of another."""
    if not spec.volumes:
        return ()
    known: tuple[Volume, ...] | None = spec.memo.get(_MEMO)
    if known is None:
        known = spec.memo[_MEMO] = tuple(volume for volume in spec.volumes if _can_conflict(volume))
    return known


def disks_conflict(spec: PodSpec, other: PodSpec) -> bool:
    """Does any disk of one pod exclude one of the other?"""
    mine = exclusive_disks(spec)
    return bool(mine) and any(_conflict(volume, disk) for disk in exclusive_disks(other) for volume in mine)


def _can_conflict(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.iscsi is not None
        or volume.rbd is not None
    )


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
