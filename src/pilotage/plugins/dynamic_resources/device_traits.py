"""What selectors see of a device, and what they said of it.

A selector sees the driver, attributes and capacity, not the name. Clusters have many devices of few models, so devices
that look alike share their traits: each expression is evaluated once per model, whatever the number of nodes.

CEL is imported when the first selector is evaluated: most clusters have no devices, and it takes a tenth of the time in
which a scheduler starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from pilotage.model.resource import Device
from pilotage.plugins.dynamic_resources.errors import SelectorCompileError, SelectorError

if TYPE_CHECKING:
    from pilotage.plugins.dynamic_resources.device_selectors import BoundDevice

_MOST_VERDICTS = 1024

_encode = msgspec.json.Encoder().encode


class DeviceTraits:
    """The traits of one model of devices; they live as long as there is such a device."""

    __slots__ = ("__weakref__", "_bound", "_device", "_driver", "_verdicts")

    def __init__(self, driver: str, device: Device) -> None:
        self._driver = driver
        self._device = device
        self._bound: BoundDevice | None = None
        self._verdicts: dict[str, bool | SelectorError] = {}

    def satisfy(self, expression: str, before: Callable[[], None] = lambda: None) -> bool:
        """Does a CEL expression hold? SelectorError if it fails. `before` is called before one that is not known."""
        verdict = self._verdicts.get(expression)
        if verdict is None:
            before()
            if len(self._verdicts) >= _MOST_VERDICTS:
                self._verdicts.clear()
            verdict = self._verdicts[expression] = self._evaluate(expression)
        if isinstance(verdict, SelectorError):
            # Raised again and again: without this its traceback would grow each time.
            raise verdict.with_traceback(None)
        return verdict

    def _evaluate(self, expression: str) -> bool | SelectorError:
        from pilotage.cel import CelCompileError, CelError
        from pilotage.plugins.dynamic_resources.device_selectors import bind_device, compile_selector

        try:
            if self._bound is None:
                self._bound = bind_device(self._driver, self._device)
            return compile_selector(expression).matches(self._bound)
        except CelCompileError as error:
            return SelectorCompileError(str(error))
        except CelError as error:
            return SelectorError(str(error))


_known: WeakValueDictionary[tuple[str, bytes], DeviceTraits] = WeakValueDictionary()


def traits_of(driver: str, device: Device) -> DeviceTraits:
    """The traits that the device shares with all devices that selectors cannot tell from it."""
    look = (device.attributes, device.capacity, bool(device.allow_multiple_allocations))
    key = (driver, _encode(look))
    traits = _known.get(key)
    if traits is None:
        traits = _known[key] = DeviceTraits(driver, device)
    return traits
