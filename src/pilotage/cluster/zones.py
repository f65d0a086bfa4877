"""In which order nodes are walked: round robin over zones, so that neighbours in the order are in different zones."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.model import Node

_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_of(node: Node) -> tuple[str, str]:
    """Region and zone of a node, ("", "") if it has neither."""
    return _first_label(node, _REGION_LABELS), _first_label(node, _ZONE_LABELS)


def _first_label(node: Node, keys: Sequence[str]) -> str:
    return next((node.labels[key] for key in keys if node.labels.get(key)), "")


Zone = tuple[str, str]


class ZoneTree:
    """Node names by zone. A zone has its turn from its first node to its last; a node keeps its place in its zone."""

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[str, None]] = {}

    def add(self, name: str, zone: Zone) -> None:
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str, zone: Zone) -> None:
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]

    def walk(self) -> list[str]:
        """The first node of every zone, then the second, ...; zones and nodes in the order of their arrival."""
        zones = [list(names) for names in self._zones.values()]
        depth = max(map(len, zones), default=0)
        return [names[level] for level in range(depth) for names in zones if level < len(names)]
