"""The devices that drivers publish, found by the node that can use them.

Each slice is kept with its devices prepared for the search: their identity, their taints (those of DeviceTaintRules
included), and what selectors say of them. A version per node tells whether anything that a node can use has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilotage.api import ClusterIndex
from pilotage.model.resource import Device, DeviceTaint, DeviceTaintRule, ResourceSlice
from pilotage.plugins.dynamic_resources.change_log import ChangeLog
from pilotage.plugins.dynamic_resources.device_ids import DeviceID, PoolID
from pilotage.plugins.dynamic_resources.device_taints import rule_taints
from pilotage.plugins.dynamic_resources.device_traits import DeviceTraits, traits_of


class PoolDevice:
    """A published device; it lives as long as its slice stays as it is."""

    __slots__ = ("_traits", "device", "id", "is_node_local", "per_device_nodes", "published", "taints")

    def __init__(self, published: ResourceSlice, device: Device, rules: list[DeviceTaintRule]) -> None:
        spec = published.spec
        self.published = published
        self.device = device
        self.id = DeviceID(spec.driver, spec.pool.name, device.name)
        self.taints: tuple[DeviceTaint, ...] = device.taints + rule_taints(rules, self.id)
        self.per_device_nodes = bool(spec.per_device_node_selection)
        self.is_node_local = bool(spec.node_name or device.node_name or device.binds_to_node)
        self._traits: DeviceTraits | None = None

    def satisfies(self, expression: str) -> bool:
        """Does a CEL expression hold for this device? Each is evaluated once for all that look alike; may CelError."""
        if self._traits is None:
            self._traits = traits_of(self.id.driver, self.device)
        return self._traits.satisfy(expression)


class PublishedSlice:
    """A slice with its devices prepared."""

    __slots__ = ("devices", "name", "pool", "spec")

    def __init__(self, published: ResourceSlice, rules: list[DeviceTaintRule]) -> None:
        self.name = published.name
        self.spec = published.spec
        self.pool = PoolID(published.spec.driver, published.spec.pool.name)
        self.devices = tuple(PoolDevice(published, device, rules) for device in published.spec.devices)


class SliceIndex(ClusterIndex):
    """All slices, by pool and by node."""

    kinds = frozenset({"ResourceSlice", "DeviceTaintRule"})

    def __init__(self) -> None:
        self._published: dict[str, ResourceSlice] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._pools: dict[PoolID, dict[str, PublishedSlice]] = {}
        self._local: dict[str, dict[str, PublishedSlice]] = {}
        self._shared: dict[str, PublishedSlice] = {}
        self._versions: dict[str, int] = {}
        self._shared_version = 0
        self.log: ChangeLog[str | None] = ChangeLog()
        """Nodes whose devices changed; None stands for all nodes."""

    def candidates(self, node_name: str) -> Iterator[PublishedSlice]:
        """Slices of this node, and all that are not of one node."""
        yield from self._local.get(node_name, {}).values()
        yield from self._shared.values()

    def of_pool(self, pool: PoolID) -> Mapping[str, PublishedSlice]:
        return self._pools.get(pool, {})

    def version(self, node_name: str) -> tuple[int, int]:
        """Changes with everything that the pools of a node depend on."""
        return self._versions.get(node_name, 0), self._shared_version

    def nodes_of(self, pool: PoolID) -> list[str] | None:
        """The nodes that a pool's devices are for; None if that cannot be said by name."""
        names = {published.spec.node_name for published in self.of_pool(pool).values()}
        return None if None in names or "" in names else sorted(name for name in names if name)

    # --- keeping up --------------------------------------------------------------------------------------------

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        if kind == "DeviceTaintRule":
            self._rules[new.name] = new
            self._refresh_all()
            return
        self._drop(new.name)
        self._keep(new)

    def object_removed(self, kind: str, obj: Any) -> None:
        if kind == "DeviceTaintRule":
            self._rules.pop(obj.name, None)
            self._refresh_all()
            return
        self._drop(obj.name)

    def _keep(self, published: ResourceSlice) -> None:
        rules = [self._rules[name] for name in sorted(self._rules)]
        prepared = PublishedSlice(published, rules)
        self._published[published.name] = published
        self._pools.setdefault(prepared.pool, {})[prepared.name] = prepared
        self._home(prepared)[prepared.name] = prepared
        self._touch(prepared)

    def _drop(self, name: str) -> None:
        published = self._published.pop(name, None)
        if published is None:
            return
        pool = PoolID(published.spec.driver, published.spec.pool.name)
        prepared = self._pools[pool][name]
        self._touch(prepared)
        del self._pools[pool][name]
        if not self._pools[pool]:
            del self._pools[pool]
        del self._home(prepared)[name]

    def _home(self, prepared: PublishedSlice) -> dict[str, PublishedSlice]:
        node_name = prepared.spec.node_name
        return self._local.setdefault(node_name, {}) if node_name else self._shared

    def _touch(self, changed: PublishedSlice) -> None:
        """Whether a pool is complete depends on all its slices, also on those of other nodes."""
        for prepared in self._pools[changed.pool].values():
            self.log.append(prepared.spec.node_name or None)
            if prepared.spec.node_name:
                self._versions[prepared.spec.node_name] = self._versions.get(prepared.spec.node_name, 0) + 1
            else:
                self._shared_version += 1

    def _refresh_all(self) -> None:
        for published in list(self._published.values()):
            self._drop(published.name)
            self._keep(published)
