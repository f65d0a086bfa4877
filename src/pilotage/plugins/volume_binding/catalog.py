"""Volumes and claims as the scheduler believes them to be: what the API server says, and what was assumed since.

Reserve assumes that a free volume is a claim's, or the node of a new volume, before the API server knows. That holds
until the API server has something newer to say of the object, or until it is taken back.

Free volumes are filed by storage class and by the label that a node must have, the smallest first: for most nodes the
volume to take is the first one of a short list.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from pilotage.api import ClusterIndex
from pilotage.change_log import ChangeLog
from pilotage.model.quantity import quantity_value
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim
from pilotage.plugins.pod_volumes import class_name_of
from pilotage.plugins.volume_binding.topology import ELSEWHERE, Place, keys_of, places_of, required_affinity

_Filed = tuple[int, str]
"""Size and name: the order in which volumes are offered."""


class ClassVolumes(Struct, eq=False):
    """The volumes of one storage class that a claim may take."""

    free: dict[Place, list[_Filed]] = field(default_factory=dict)
    claimed: dict[str, dict[str, None]] = field(default_factory=dict)
    """Claim key -> names of the volumes that name this claim."""
    keys: Counter[str] = field(default_factory=Counter)
    """The labels that decide from where the free ones can be reached."""
    changes: ChangeLog[Place] = field(default_factory=ChangeLog)


class VolumeCatalog(ClusterIndex):
    kinds = frozenset({"PersistentVolume", "PersistentVolumeClaim"})
    keeps_more = True

    def __init__(self) -> None:
        self._volumes: dict[str, PersistentVolume] = {}
        self._assumed_volumes: dict[str, PersistentVolume] = {}
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._assumed_claims: dict[str, PersistentVolumeClaim] = {}
        self._classes: dict[str, ClassVolumes] = {}

    # --- what the API server says ------------------------------------------------------------------------------

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        if kind == "PersistentVolume":
            self._unfile(self.volume(new.name))
            self._assumed_volumes.pop(new.name, None)
            self._volumes[new.name] = new
            self._file(new)
        else:
            self._assumed_claims.pop(new.key, None)
            self._claims[new.key] = new

    def object_removed(self, kind: str, obj: Any) -> None:
        if kind == "PersistentVolume":
            self._unfile(self.volume(obj.name))
            self._assumed_volumes.pop(obj.name, None)
            self._volumes.pop(obj.name, None)
        else:
            self._assumed_claims.pop(obj.key, None)
            self._claims.pop(obj.key, None)

    # --- what was assumed -------------------------------------------------------------------------------------

    def assume_volume(self, volume: PersistentVolume) -> None:
        self._unfile(self.volume(volume.name))
        self._assumed_volumes[volume.name] = volume
        self._file(volume)

    def restore_volume(self, assumed: PersistentVolume) -> None:
        """Take back this very assumption; nothing happens if it does not stand any more."""
        if self._assumed_volumes.get(assumed.name) is assumed:
            del self._assumed_volumes[assumed.name]
            self._unfile(assumed)
            self._file(self._volumes[assumed.name])

    def assume_claim(self, claim: PersistentVolumeClaim) -> None:
        self._assumed_claims[claim.key] = claim

    def restore_claim(self, assumed: PersistentVolumeClaim) -> None:
        if self._assumed_claims.get(assumed.key) is assumed:
            del self._assumed_claims[assumed.key]

    @property
    def assumed(self) -> int:
        """How many objects are believed to be other than the API server says."""
        return len(self._assumed_volumes) + len(self._assumed_claims)

    # --- what is asked -----------------------------------------------------------------------------------------

    def volume(self, name: str) -> PersistentVolume | None:
        return self._assumed_volumes.get(name) or self._volumes.get(name)

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        return self._assumed_claims.get(key) or self._claims.get(key)

    def deciding_labels(self, class_name: str, claim_key: str) -> Iterator[str]:
        """The labels of nodes that decide which volumes of the class are in reach of a claim."""
        known = self._classes.get(class_name)
        if known is not None:
            yield from known.keys
            for volume in self.claimed_by(class_name, claim_key):
                yield from keys_of(required_affinity(volume))

    def changes(self, class_name: str) -> ChangeLog[Place]:
        """Where volumes of the class have come, gone or changed."""
        return self._classes.setdefault(class_name, ClassVolumes()).changes

    def claimed_by(self, class_name: str, claim_key: str) -> list[PersistentVolume]:
        """Volumes of the class that name this claim, by name."""
        known = self._classes.get(class_name)
        return [] if known is None else [self._known(name) for name in sorted(known.claimed.get(claim_key, ()))]

    def free_volumes(
        self, class_name: str, labels: Mapping[str, str], at_least: int
    ) -> Iterator[Iterator[PersistentVolume]]:
        """Lists of volumes that name no claim, the smallest first in each; their affinity may still not match."""
        known = self._classes.get(class_name)
        if known is None:
            return
        for place in (ELSEWHERE, *((key, labels[key]) for key in known.keys if key in labels)):
            filed = known.free.get(place)
            if filed:
                start = bisect_left(filed, (at_least, ""))
                yield (self._known(name) for _, name in filed[start:])

    def _known(self, name: str) -> PersistentVolume:
        volume = self.volume(name)
        assert volume is not None, "only known volumes are filed"
        return volume

    # --- filing ------------------------------------------------------------------------------------------------

    def _file(self, volume: PersistentVolume) -> None:
        known = self._classes.setdefault(class_name_of(volume), ClassVolumes())
        affinity, reference = required_affinity(volume), volume.spec.claim_ref
        if reference is not None:
            known.claimed.setdefault(f"{reference.namespace}/{reference.name}", {})[volume.name] = None
            return
        known.keys.update(keys_of(affinity))
        for place in places_of(affinity):
            known.changes.touch(place)
            insort(known.free.setdefault(place, []), (size_of(volume), volume.name))

    def _unfile(self, volume: PersistentVolume | None) -> None:
        if volume is None:
            return
        known = self._classes[class_name_of(volume)]
        affinity, reference = required_affinity(volume), volume.spec.claim_ref
        if reference is not None:
            _drop(known.claimed, f"{reference.namespace}/{reference.name}", volume.name)
            return
        known.keys.subtract(keys_of(affinity))
        known.keys = +known.keys
        for place in places_of(affinity):
            known.changes.touch(place)
            filed = known.free[place]
            del filed[bisect_left(filed, (size_of(volume), volume.name))]

    def check(self) -> None:
        """Verify the invariants; for tests."""
        fresh = VolumeCatalog()
        for volume in {**self._volumes, **self._assumed_volumes}.values():
            fresh._file(volume)
        for name, known in self._classes.items():
            expected = fresh._classes.get(name, ClassVolumes())
            assert {p: f for p, f in known.free.items() if f} == expected.free, "free volumes are filed"
            assert known.claimed == expected.claimed, "claimed volumes are filed"
            assert known.keys == expected.keys, "labels are counted"


def size_of(volume: PersistentVolume) -> int:
    return quantity_value(volume.spec.capacity.get("storage", 0))


def _drop(groups: dict[str, dict[str, None]], group: str, name: str) -> None:
    groups[group].pop(name)
    if not groups[group]:
        del groups[group]
