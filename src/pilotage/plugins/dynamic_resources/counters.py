"""Shared counters: devices of one pool that are cut from the same piece of hardware.

A pool has counter sets; each device consumes of them. What all taken devices consume together must not exceed what a
set has. A further share of a device that is shared already costs nothing more.
"""

from __future__ import annotations

from fractions import Fraction

from pilotage.model.quantity import parse_quantity
from pilotage.plugins.dynamic_resources.device_ids import PoolID
from pilotage.plugins.dynamic_resources.ledger import DeviceLedger
from pilotage.plugins.dynamic_resources.pool import Counters, Pool
from pilotage.plugins.dynamic_resources.published import PoolDevice


class CounterBook:
    """What is left of the counters of each pool while a search goes on."""

    def __init__(self, ledger: DeviceLedger) -> None:
        self._ledger = ledger
        self._left: dict[PoolID, Counters] = {}
        self._overdrawn: set[PoolID] = set()
        """Pools of which too much is taken already: as in kube-scheduler, no device that counts can be had of them."""

    def take(self, pool: Pool, device: PoolDevice) -> bool:
        """Consume what the device needs; False, and nothing consumed, if there is not so much left."""
        left = self._of(pool)
        wanted = consumption_of(device)
        if pool.id in self._overdrawn or any(
            amount > left.get(name, {}).get(counter, 0) for name, counter, amount in wanted
        ):
            return False
        for name, counter, amount in wanted:
            left[name][counter] -= amount
        return True

    def give_back(self, pool: Pool, device: PoolDevice) -> None:
        left = self._of(pool)
        for name, counter, amount in consumption_of(device):
            left[name][counter] += amount

    def _of(self, pool: Pool) -> Counters:
        known = self._left.get(pool.id)
        if known is None:
            known = self._left[pool.id] = counters_left(pool, self._ledger)
            if any(amount < 0 for counters in known.values() for amount in counters.values()):
                self._overdrawn.add(pool.id)
        return known


def counters_left(pool: Pool, ledger: DeviceLedger) -> Counters:
    """The counters of a pool without what taken devices consume."""
    left = pool.counters()
    for device in pool.all_devices():
        if not (device.id in ledger.taken or ledger.is_shared(device.id)):
            continue
        for name, counter, amount in consumption_of(device):
            if counter in left.get(name, {}):
                left[name][counter] -= amount
    return left


def consumption_of(device: PoolDevice) -> list[tuple[str, str, Fraction]]:
    """Counter set, counter and amount of all that a device consumes."""
    return [
        (consumed.counter_set, name, parse_quantity(counter.value))
        for consumed in device.device.consumes_counters
        for name, counter in consumed.counters.items()
    ]
