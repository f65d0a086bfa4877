"""A published slice with its devices prepared for the search: identity, taints, what selectors say of them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pilotage.model.resource import Device, DeviceTaint, DeviceTaintRule, ResourceSlice
from pilotage.plugins.dynamic_resources.device_ids import DeviceID, PoolID
from pilotage.plugins.dynamic_resources.device_taints import rule_taints
from pilotage.plugins.dynamic_resources.device_traits import DeviceTraits, traits_of

_encode = msgspec.json.Encoder().encode


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
