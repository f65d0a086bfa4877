"""Do the selectors of a class or request hold for a device?"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.cel import CelCompileError, CelError
from pilotage.model.resource import DeviceSelector
from pilotage.plugins.dynamic_resources.errors import AllocationError
from pilotage.plugins.dynamic_resources.published import PoolDevice
from pilotage.plugins.dynamic_resources.requests import expressions
from pilotage.plugins.dynamic_resources.time_limit import TimeLimit


def matches(device: PoolDevice, selectors: Sequence[DeviceSelector], where: str, limit: TimeLimit) -> bool:
    """Do all of them hold? AllocationError if one cannot be asked; `where` says of whom they are."""
    for place, expression in enumerate(expressions(selectors, where)):
        try:
            if not device.satisfies(expression, limit.check):
                return False
        except CelError as error:
            raise _selector_error(where, place, device, error) from error
    return True


def _selector_error(where: str, place: int, device: PoolDevice, error: CelError) -> AllocationError:
    if isinstance(error, CelCompileError):
        return AllocationError(f"{where}: selector #{place}: CEL compile error: {error}")
    return AllocationError(f"{where}: selector #{place} on device {device.id}: CEL runtime error: {error}")
