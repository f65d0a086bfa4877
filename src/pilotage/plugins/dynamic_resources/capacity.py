"""Consumable capacity: how much of a device a request takes, and whether so much is left.

What is taken follows the device's policy: amounts are rounded up to a valid one, or rejected. Devices that may be
allocated several times hand out shares; a device that may not must be large enough as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pilotage.model.quantity import Format, format_quantity, parse_quantity
from pilotage.model.resource import CapacityRange, CapacityRequestPolicy, CapacityRequirements, Device, DeviceCapacity
from pilotage.plugins.dynamic_resources.claim_book import DeviceLedger
from pilotage.plugins.dynamic_resources.devices import PoolDevice, PoolID
from pilotage.plugins.dynamic_resources.requests import AllocationError
from pilotage.plugins.dynamic_resources.slices import Counters, Pool

Amounts = dict[str, Fraction]
_MILLI = Fraction(1, 1000)


def consumption(device: Device, wanted: CapacityRequirements | None) -> Amounts | None:
    """What a request takes of a device, by capacity name; None if the device cannot serve such a request."""
    requests = wanted.requests if wanted is not None else {}
    if not requests and not device.capacity:
        return {}
    if any(name not in device.capacity for name in requests):
        return None
    taken: Amounts = {}
    for name, capacity in device.capacity.items():
        amount = _amount(parse_quantity(requests[name]) if name in requests else None, capacity)
        if amount < 0:
            raise AllocationError(f"device {device.name}: capacity {name}: a negative amount cannot be consumed")
        if not _is_valid(amount, capacity.request_policy):
            return None
        taken[name] = amount
    return taken


def fits(device: Device, taken: Amounts, *used: Mapping[str, Fraction]) -> bool:
    """Is so much left of the device?"""
    return all(
        amount + sum(use.get(name, 0) for use in used) <= parse_quantity(device.capacity[name].value)
        for name, amount in taken.items()
    )


def _amount(requested: Fraction | None, capacity: DeviceCapacity) -> Fraction:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return parse_quantity(capacity.value if default is None else default)
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_to_range(requested, policy.valid_range)
    if policy.valid_values:
        larger = [value for value in map(parse_quantity, policy.valid_values) if value >= requested]
        return min(larger, default=requested)
    return requested


def _rounded_to_range(requested: Fraction, valid: CapacityRange) -> Fraction:
    assert valid.min is not None
    least = parse_quantity(valid.min)
    if requested < least:
        return least
    if valid.step is None:
        return requested
    unit = _unit(requested, valid)
    start, step = _whole(least, unit), _whole(parse_quantity(valid.step), unit)
    if step <= 0:
        return requested
    steps = -(-(_whole(requested, unit) - start) // step)
    return (start + steps * step) * unit


def _is_valid(amount: Fraction, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == parse_quantity(policy.default)):
        return True
    if policy.valid_range is not None:
        return _is_in_range(amount, policy.valid_range)
    return not policy.valid_values or amount in map(parse_quantity, policy.valid_values)


def _is_in_range(amount: Fraction, valid: CapacityRange) -> bool:
    if valid.max is not None and amount > parse_quantity(valid.max):
        return False
    if valid.step is None:
        return True
    unit = _unit(amount, valid)
    step = _whole(parse_quantity(valid.step), unit)
    least = _whole(parse_quantity(valid.min), unit) if valid.min is not None else 0
    return step <= 0 or (_whole(amount, unit) - least) % step == 0


def _unit(amount: Fraction, valid: CapacityRange) -> Fraction:
    """Steps are counted in thousandths if everything is a multiple of them, otherwise in whole units."""
    bounds = [parse_quantity(bound) for bound in (valid.min, valid.max, valid.step) if bound is not None]
    is_milli = all((value / _MILLI).denominator == 1 for value in (amount, *bounds))
    return _MILLI if is_milli else Fraction(1)


def _whole(value: Fraction, unit: Fraction) -> int:
    scaled = value / unit
    return -(-scaled.numerator // scaled.denominator)


def written(taken: Mapping[str, Fraction], device: Device) -> dict[str, str]:
    """Amounts as they are stored in a claim, in the notation of the device's own capacity."""
    return {name: format_quantity(amount, _form(device.capacity[name])) for name, amount in taken.items()}


def _form(capacity: DeviceCapacity) -> Format:
    return "BinarySI" if str(capacity.value).endswith("i") else "DecimalSI"


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
