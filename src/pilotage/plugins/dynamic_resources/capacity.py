"""Consumable capacity: how much of a device a request takes, and whether so much is left.

What is taken follows the device's policy: amounts are rounded up to a valid one, or rejected. Devices that may be
allocated several times hand out shares; a device that may not must be large enough as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pilotage.model.quantity import Format, format_quantity, parse_quantity
from pilotage.model.resource import CapacityRange, CapacityRequestPolicy, CapacityRequirements, Device, DeviceCapacity
from pilotage.plugins.dynamic_resources.errors import AllocationError

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
