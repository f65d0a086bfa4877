"""Claims as the scheduler believes them to be, and the devices that they have.

A claim that was just written is *assumed*: it counts before the watch brings it back. An allocation that a pod in
flight is going to write is *pending*: its devices are taken, the claim itself is unchanged.

    free -- reserve --> pending -- written --> assumed -- watch --> known
                           |
                           +-- unreserve --> free

Whatever the source, the devices of a claim are counted once, by its UID. Admin access takes nothing away.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from pilotage.api import ClusterIndex
from pilotage.api.group_members import group_key
from pilotage.change_log import ChangeLog
from pilotage.model import Pod
from pilotage.model.quantity import parse_quantity
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.claims import is_made_for, is_newer
from pilotage.plugins.dynamic_resources.devices import DeviceID, PoolID, device_of
from pilotage.plugins.dynamic_resources.extended_claim import ANNOTATION

_NOTHING: Mapping[str, Fraction] = {}
_Key = TypeVar("_Key", bound=Hashable)


class DeviceLedger:
    """Allocations by claim UID, and what they sum up to."""

    def __init__(self) -> None:
        self._entries: dict[str, AllocationResult] = {}
        self.taken: dict[DeviceID, int] = {}
        """Devices that somebody has for itself."""
        self._shares: dict[DeviceID, int] = {}
        self._consumed: dict[DeviceID, dict[str, Fraction]] = {}
        self._touched: dict[PoolID, int] = {}
        self.log: ChangeLog[PoolID] = ChangeLog()
        """Pools in which something was taken or given back: for those who remember what was free."""

    def is_shared(self, device: DeviceID) -> bool:
        """Somebody has a share of the device."""
        return device in self._shares

    def has_any_of(self, pool: PoolID) -> bool:
        """Is anything taken of the pool?"""
        return pool in self._touched

    def consumed(self, device: DeviceID) -> Mapping[str, Fraction]:
        """What shares take of a device."""
        return self._consumed.get(device, _NOTHING)

    def holders(self, device: DeviceID) -> list[str]:
        """UIDs of the claims that have the device or a share of it; looks at all of them."""
        return [
            uid
            for uid, allocation in self._entries.items()
            if any(device_of(result) == device and not result.admin_access for result in allocation.devices.results)
        ]

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def put(self, uid: str, allocation: AllocationResult) -> None:
        """Count the allocation of a claim; one that is counted already stays as it is."""
        if uid not in self._entries:
            self._entries[uid] = allocation
            self._count(allocation, 1)

    def remove(self, uid: str) -> None:
        allocation = self._entries.pop(uid, None)
        if allocation is not None:
            self._count(allocation, -1)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = device_of(result)
            _add(self.taken if result.share_id is None else self._shares, device, sign)
            if result.share_id is not None:
                self._consume(device, result.consumed_capacity, sign)
            pool = PoolID(result.driver, result.pool)
            _add(self._touched, pool, sign)
            self.log.touch(pool)

    def _consume(self, device: DeviceID, amounts: Mapping[str, str | int | float], sign: int) -> None:
        consumed = self._consumed.setdefault(device, {})
        for name, amount in amounts.items():
            consumed[name] = consumed.get(name, Fraction(0)) + sign * parse_quantity(amount)
        if not any(consumed.values()):
            del self._consumed[device]

    def devices(self) -> Iterator[DeviceID]:
        """Every device of which anything is taken."""
        yield from self.taken
        yield from self._shares

    def check(self) -> None:
        """Verify the invariants; for tests."""
        fresh = DeviceLedger()
        for uid, allocation in self._entries.items():
            fresh.put(uid, allocation)
        assert fresh.taken == self.taken, "dedicated devices are those of the entries"
        assert fresh._shares == self._shares, "shared devices are those of the entries"
        assert fresh._touched == self._touched, "pools are touched by the entries"
        assert fresh._consumed == self._consumed, "consumed capacity is that of the entries"


def _add(counts: dict[_Key, int], key: _Key, sign: int) -> None:
    count = counts.get(key, 0) + sign
    if count:
        counts[key] = count
    else:
        del counts[key]


class PendingAllocation(msgspec.Struct, eq=False):
    """An allocation on its way, and the pods (by UID) that need it."""

    allocation: AllocationResult
    group: str = ""
    """The key of the group whose members may share it."""
    sharers: set[str] = msgspec.field(default_factory=set)
    turned_away: dict[str, Pod] = msgspec.field(default_factory=dict)
    """Pods (by UID) that were rejected because it is not known yet what becomes of it."""


class ClaimBook(ClusterIndex):
    """All claims, with what is assumed and pending."""

    kinds = frozenset({"ResourceClaim"})
    keeps_more = True

    def __init__(self) -> None:
        self.ledger = DeviceLedger()
        self._known: dict[str, ResourceClaim] = {}
        self._assumed: dict[str, ResourceClaim] = {}
        self._pending: dict[str, PendingAllocation] = {}
        self._keys: dict[str, str] = {}
        """UID -> key of the known claims."""
        self._extended: dict[str, str] = {}
        """UID of a pod -> key of the claim that was made for its extended resources."""

    def get(self, key: str) -> ResourceClaim | None:
        """A claim by "namespace/name", as it was written last."""
        return self._assumed.get(key) or self._known.get(key)

    def extended_claim(self, pod: Pod) -> ResourceClaim | None:
        """The claim that an earlier attempt made for the pod's extended resources."""
        key = self._extended.get(pod.uid)
        claim = None if key is None else self.get(key)
        return claim if claim is not None and is_made_for(claim, pod) else None

    def holders(self, device: DeviceID) -> list[str]:
        """The claims ("namespace/name") that have the device or a share of it, or are about to get it."""
        # Those made by the scheduler for extended resources have no name yet while they are in flight.
        return sorted(self._keys.get(uid, uid) for uid in self.ledger.holders(device))

    # --- in flight ---------------------------------------------------------------------------------------------

    def pending(self, uid: str) -> PendingAllocation | None:
        return self._pending.get(uid)

    def reserve(self, claim: ResourceClaim, allocation: AllocationResult, pod: Pod) -> None:
        """The pod is going to write this allocation."""
        uid = claim.uid
        entry = self._pending.get(uid)
        if entry is None:
            entry = self._pending[uid] = PendingAllocation(allocation, group_key(pod))
        entry.sharers.add(pod.uid)
        self.ledger.put(uid, entry.allocation)

    def unreserve(self, uid: str, pod_uid: str) -> PendingAllocation | None:
        """The pod is not going to write it after all; returns what is over with that: nobody else is either."""
        entry = self._pending.get(uid)
        if entry is None:
            return None
        entry.sharers.discard(pod_uid)
        return None if entry.sharers else self.settle(uid)

    def settle(self, uid: str) -> PendingAllocation | None:
        """The allocation was written or given up: from now on the claim itself counts. Returns what is over."""
        entry = self._pending.pop(uid, None)
        self._recount(uid)
        return entry

    def assume(self, claim: ResourceClaim) -> None:
        """This is what the API server has now, although no watch has said so yet."""
        key, uid = claim.key, claim.metadata.uid
        known = self._known.get(key)
        if known is None or known.metadata.uid != uid or not is_newer(claim, known):
            return
        self._assumed[key] = claim
        self._recount(uid)

    # --- keeping up --------------------------------------------------------------------------------------------

    def object_put(self, kind: str, old: Any | None, new: ResourceClaim) -> None:
        metadata = new.metadata
        key, uid = new.key, metadata.uid
        if old is not None and old.metadata.uid != uid:
            self.object_removed(kind, old)
        self._known[key] = new
        self._keys[uid] = key
        if metadata.annotations.get(ANNOTATION) == "true" and metadata.controller is not None:
            self._extended[metadata.controller.uid] = key
        assumed = self._assumed.get(key)
        if assumed is not None and not is_newer(assumed, new):
            del self._assumed[key]
        self._recount(uid)

    def object_removed(self, kind: str, obj: ResourceClaim) -> None:
        self._known.pop(obj.key, None)
        self._assumed.pop(obj.key, None)
        self._keys.pop(obj.uid, None)
        if obj.metadata.controller is not None and self._extended.get(obj.metadata.controller.uid) == obj.key:
            del self._extended[obj.metadata.controller.uid]
        self._recount(obj.uid)

    def _recount(self, uid: str) -> None:
        """Let the ledger hold what the claim has, or is going to have."""
        key = self._keys.get(uid)
        claim = None if key is None else self.get(key)
        allocation = None if claim is None else claim.status.allocation
        if allocation is None and (entry := self._pending.get(uid)) is not None:
            allocation = entry.allocation
        if allocation is None:
            self.ledger.remove(uid)
        else:
            self.ledger.put(uid, allocation)

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self.ledger.check()
        allocated = {
            c.uid for key in self._known if (c := self.get(key)) is not None and c.status.allocation is not None
        }
        for uid in allocated | set(self._pending):
            assert uid in self.ledger, f"claim {uid} is counted"
