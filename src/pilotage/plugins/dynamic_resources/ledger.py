"""Which devices are taken, and by how much.

Counted are the allocations of claims in the cluster, those that were written but not seen yet, and those that a pod
in flight will write. Whatever the source, a claim is counted once, by its UID. Admin access takes nothing away.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from typing import TypeVar

from pilotage.change_log import ChangeLog
from pilotage.model.quantity import parse_quantity
from pilotage.model.resource import AllocationResult
from pilotage.plugins.dynamic_resources.device_ids import DeviceID, PoolID, device_of

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
