"""In which order nodes are walked: round robin over zones, so that neighbours in the order are in different zones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pilotage.model import Node

_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_of(node: Node) -> tuple[str, str]:
    """Region and zone of a node, ("", "") if it has neither."""
    return _first_label(node, _REGION_LABELS), _first_label(node, _ZONE_LABELS)


def _first_label(node: Node, keys: Sequence[str]) -> str:
    return next((node.labels[key] for key in keys if node.labels.get(key)), "")


def zone_round_robin(zones: Sequence[tuple[str, str]], arrival: Sequence[int]) -> NDArray[np.int64]:
    """Row numbers: the first node of every zone, then the second, ...; zones and nodes in order of arrival."""
    by_zone: dict[tuple[str, str], list[int]] = {}
    for row in sorted(range(len(zones)), key=arrival.__getitem__):
        by_zone.setdefault(zones[row], []).append(row)
    depth = max(map(len, by_zone.values()), default=0)
    walk = [rows[level] for level in range(depth) for rows in by_zone.values() if level < len(rows)]
    return np.array(walk, dtype=np.int64)
