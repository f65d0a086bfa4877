"""How well volumes fill what they are taken from: by default, the more space is left the better."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilotage.model.quantity import quantity_value
from pilotage.plugins.args import UtilizationShapePoint
from pilotage.plugins.pod_volumes import class_name_of
from pilotage.plugins.volume_binding.catalog import size_of
from pilotage.plugins.volume_binding.finding import Found
from pilotage.plugins.volume_binding.matching import requested_size

_FULL = 100
_SCALE = 10
"""Shapes are written with scores up to 10."""

Usage = dict[str, tuple[int, int]]
"""By storage class: requested and offered."""


def capacity_score(shape: Sequence[UtilizationShapePoint]) -> Callable[[Found], int]:
    """The score of a node by what the pod's volumes take there: the mean over storage classes."""
    points = tuple((point.utilization, point.score * _SCALE) for point in shape)

    def score(found: Found) -> int:
        usage = _usage_of_volumes(found) if found.bindings else _usage_of_pools(found)
        if not usage:
            return 0
        total = sum(_at(points, _utilization(*amounts)) for amounts in usage.values())
        # Half is rounded up, as kube-scheduler does, not to even.
        return (2 * total + len(usage)) // (2 * len(usage))

    return score


def _usage_of_volumes(found: Found) -> Usage:
    usage: Usage = {}
    for volume, claim in found.bindings:
        requested, offered = usage.get(class_name_of(volume), (0, 0))
        usage[class_name_of(volume)] = (requested + requested_size(claim), offered + size_of(volume))
    return usage


def _usage_of_pools(found: Found) -> Usage:
    usage: Usage = {}
    for provision in found.provisions:
        if provision.capacity is None:
            continue
        requested, _ = usage.get(class_name_of(provision.claim), (0, 0))
        offered = provision.capacity.capacity
        # All volumes of a class come from one pool: requests add up, the pool does not.
        usage[class_name_of(provision.claim)] = (
            requested + requested_size(provision.claim),
            0 if offered is None else quantity_value(offered),
        )
    return usage


def _utilization(requested: int, offered: int) -> int:
    return _FULL if offered == 0 or requested > offered else requested * _FULL // offered


def _at(points: Sequence[tuple[int, int]], utilization: int) -> int:
    """The broken line through the points, rounded towards zero."""
    previous: tuple[int, int] | None = None
    for x, y in points:
        if utilization <= x:
            if previous is None:
                return y
            rise = (y - previous[1]) * (utilization - previous[0])
            steps = abs(rise) // (x - previous[0])
            return previous[1] + (steps if rise >= 0 else -steps)
        previous = (x, y)
    return points[-1][1]
