"""How much storage of a class can be made for a node: CSIStorageCapacity objects, filed by class and label."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from pilotage.api import ClusterIndex
from pilotage.change_log import ChangeLog
from pilotage.model.quantity import quantity_value
from pilotage.model.storage import CSIStorageCapacity
from pilotage.plugins.volume_binding.topology import ELSEWHERE, Place, selector_keys, selector_places


class _OfClass(Struct, eq=False):
    keys: Counter[str] = field(default_factory=Counter)
    at: dict[Place, list[str]] = field(default_factory=dict)
    """Keys of capacity objects, in order."""
    changes: ChangeLog[Place] = field(default_factory=ChangeLog)


class StorageCapacities(ClusterIndex):
    kinds = frozenset({"CSIStorageCapacity"})
    keeps_more = True

    def __init__(self) -> None:
        self._objects: dict[str, CSIStorageCapacity] = {}
        self._classes: dict[str, _OfClass] = {}

    def object_put(self, kind: str, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> None:
        if old is not None:
            self.object_removed(kind, old)
        self._objects[new.key] = new
        if new.node_topology is None:
            return
        known = self._classes.setdefault(new.storage_class_name, _OfClass())
        known.keys.update(selector_keys(new.node_topology))
        for place in selector_places(new.node_topology):
            known.changes.touch(place)
            insort(known.at.setdefault(place, []), new.key)

    def object_removed(self, kind: str, obj: CSIStorageCapacity) -> None:
        obj = self._objects.pop(obj.key)
        if obj.node_topology is None:
            return
        known = self._classes[obj.storage_class_name]
        known.keys.subtract(selector_keys(obj.node_topology))
        known.keys = +known.keys
        for place in selector_places(obj.node_topology):
            known.changes.touch(place)
            filed = known.at[place]
            del filed[bisect_left(filed, obj.key)]

    def deciding_labels(self, class_name: str) -> Iterable[str]:
        known = self._classes.get(class_name)
        return () if known is None else known.keys

    def changes(self, class_name: str) -> ChangeLog[Place]:
        """Where capacities of the class have come, gone or changed."""
        return self._classes.setdefault(class_name, _OfClass()).changes

    def enough_for(self, class_name: str, size: int, labels: Mapping[str, str]) -> CSIStorageCapacity | None:
        """A pool that a node with these labels can reach and that can hold a volume of this size."""
        known = self._classes.get(class_name)
        if known is None:
            return None
        for place in (ELSEWHERE, *((key, labels[key]) for key in known.keys if key in labels)):
            for key in known.at.get(place, ()):
                capacity = self._objects[key]
                if _largest_volume(capacity) >= size and _is_reached(capacity, labels):
                    return capacity
        return None


def _largest_volume(capacity: CSIStorageCapacity) -> int:
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return -1 if limit is None else quantity_value(limit)


def _is_reached(capacity: CSIStorageCapacity, labels: Mapping[str, str]) -> bool:
    topology = capacity.node_topology
    return topology is not None and topology.problem() is None and topology.matches(labels)
