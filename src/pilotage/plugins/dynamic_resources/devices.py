"""Devices as drivers publish them, prepared for the search: identity, taints, and what selectors say of them.

Taints come with a device, or from DeviceTaintRules that select devices by driver, pool and name.

A selector sees the driver, attributes and capacity, not the name. Clusters have many devices of few models, so devices
that look alike share their traits: each expression is evaluated once per model, whatever the number of nodes. CEL is
imported when the first selector is evaluated: most clusters have no devices, and it takes a tenth of the time in which
a scheduler starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from pilotage.model.resource import (
    Device,
    DeviceAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceSlice,
)

if TYPE_CHECKING:
    from pilotage.plugins.dynamic_resources.device_selectors import BoundDevice


class PoolID(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


def device_of(result: DeviceAllocationResult) -> DeviceID:
    """The device that was given."""
    return DeviceID(result.driver, result.pool, result.device)


_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def are_tolerated(taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """No taint keeps a request with these tolerations away."""
    return all(
        taint.effect not in _KEEPS_AWAY or any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def rule_taints(rules: Sequence[DeviceTaintRule], device_id: DeviceID) -> tuple[DeviceTaint, ...]:
    """The taints that rules put on a device."""
    return tuple(rule.spec.taint for rule in rules if rule.selects(*device_id))


def may_select(rule: DeviceTaintRule, pool: PoolID) -> bool:
    """Could the rule be about devices of a pool?"""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return selector.driver in (None, pool.driver) and selector.pool in (None, pool.pool)


_MOST_VERDICTS = 1024

_encode = msgspec.json.Encoder().encode


class SelectorError(Exception):
    """A selector that fails on a device."""


class SelectorCompileError(SelectorError):
    """A selector that fails on every device, because it is no expression."""


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


class PoolDevice:
    """A published device; it lives as long as its slice stays as it is."""

    __slots__ = ("_content", "_traits", "device", "id", "is_node_local", "per_device_nodes", "published", "taints")

    def __init__(self, published: ResourceSlice, device: Device, rules: list[DeviceTaintRule]) -> None:
        spec = published.spec
        self.published = published
        self.device = device
        self.id = DeviceID(spec.driver, spec.pool.name, device.name)
        self.taints: tuple[DeviceTaint, ...] = device.taints + rule_taints(rules, self.id)
        self.per_device_nodes = bool(spec.per_device_node_selection)
        self.is_node_local = bool(spec.node_name or device.node_name or device.binds_to_node)
        self._traits: DeviceTraits | None = None
        self._content: bytes | None = None

    @property
    def content(self) -> bytes:
        """All that a search sees of the device, the same for devices that differ in nothing but their names."""
        if self._content is None:
            nameless = msgspec.structs.replace(self.device, name="")
            self._content = _encode((nameless, self.taints, self.is_node_local))
        return self._content

    def satisfies(self, expression: str, before: Callable[[], None] = lambda: None) -> bool:
        """Does a CEL expression hold for this device? Each is evaluated once for all that look alike.

        SelectorError if it fails. `before` is called before one is evaluated, which can take long.
        """
        if self._traits is None:
            self._traits = traits_of(self.id.driver, self.device)
        return self._traits.satisfy(expression, before)


class PublishedSlice:
    """A slice with its devices prepared."""

    __slots__ = ("devices", "name", "pool", "spec")

    def __init__(self, published: ResourceSlice, rules: list[DeviceTaintRule]) -> None:
        self.name = published.name
        self.spec = published.spec
        self.pool = PoolID(published.spec.driver, published.spec.pool.name)
        self.devices = tuple(PoolDevice(published, device, rules) for device in published.spec.devices)
