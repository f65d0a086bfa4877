"""The devices that drivers publish, found by the node that can use them.

A pool is put together from its slices. Only slices of the newest generation count, and a pool is complete when there
are as many of them as the driver announced. What counts as its slices depends on who looks: a node sees those that are
for it, and all counters. The pools of a node without binding conditions come first, then by driver and name: the search
takes the first device that will do, so this order decides who gets what.

A version per node tells whether anything that a node can use has changed. Counters are for all nodes: a pool with
counters that is incomplete or wrong keeps every node from using "all devices", wherever its own devices are. Such pools
are few, and known here (`troubled`), so that a node need not look at the counters of all the others.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from pilotage.api import Budget, ClusterIndex
from pilotage.api.budget import UNLIMITED
from pilotage.change_log import ChangeLog
from pilotage.model import Node
from pilotage.model.quantity import parse_quantity
from pilotage.model.resource import CounterSet, DeviceTaintRule, ResourceSlice
from pilotage.model.selectors import NodeSelector
from pilotage.plugins.dynamic_resources.devices import PoolDevice, PoolID, PublishedSlice, may_select
from pilotage.plugins.node_selection import term_matches

Counters = dict[str, dict[str, Fraction]]
"""Counter set -> counter -> amount."""


class Pool:
    """A pool as one node sees it. Of a pool that is not complete nothing is known but that."""

    __slots__ = ("_all_slices", "counter_sets", "devices", "has_binding_conditions", "id", "is_complete", "problem")

    def __init__(self, pool: PoolID, usable: Sequence[PublishedSlice], everything: Sequence[PublishedSlice]) -> None:
        self.id = pool
        self.is_complete = len(everything) == usable[0].spec.pool.resource_slice_count
        if not self.is_complete:
            usable = everything = ()
        self._all_slices = everything
        self.devices = tuple(_devices(usable))
        self.counter_sets = [counters for published in usable for counters in published.spec.shared_counters]
        self.problem = _problem(self.devices, self.counter_sets, self.all_devices())
        self.has_binding_conditions = any(device.device.binding_conditions for device in self.devices)

    @property
    def is_usable(self) -> bool:
        """May anything be taken from it?"""
        return self.is_complete and self.problem is None

    def all_devices(self) -> Iterator[PoolDevice]:
        """Also those that only other nodes can use: they share the counters."""
        return _devices(self._all_slices)

    def counters(self) -> Counters:
        """What the pool's devices may consume together."""
        return {
            counter_set.name: {name: parse_quantity(counter.value) for name, counter in counter_set.counters.items()}
            for counter_set in self.counter_sets
        }


def pool_of(pool: PoolID, seen: Sequence[PublishedSlice], everything: Collection[PublishedSlice]) -> Pool | None:
    """The pool as one sees it who sees these of its slices; None if what one sees is out of date."""
    newest = max(published.spec.pool.generation for published in seen)
    usable = _of_generation(seen, newest)
    if len(usable) == usable[0].spec.pool.resource_slice_count:
        return Pool(pool, usable, usable)
    if any(published.spec.pool.generation > newest for published in everything):
        # A newer generation is being published, but not for this node (yet).
        return None
    return Pool(pool, usable, _of_generation(everything, newest))


def _of_generation(slices: Iterable[PublishedSlice], wanted: int) -> list[PublishedSlice]:
    """In the order in which they are searched."""
    found = [published for published in slices if published.spec.pool.generation == wanted]
    return sorted(found, key=lambda published: published.name)


def _devices(slices: Iterable[PublishedSlice]) -> Iterator[PoolDevice]:
    """Slices with counters have no devices."""
    return (device for published in slices if not published.spec.shared_counters for device in published.devices)


def _problem(
    devices: Iterable[PoolDevice], counter_sets: Iterable[CounterSet], all_devices: Iterable[PoolDevice]
) -> str | None:
    """Why nothing may be taken from the pool; None if all is well."""
    seen: set[str] = set()
    for device in devices:
        if device.id.device in seen:
            return f"duplicate device name {device.id.device}"
        seen.add(device.id.device)
    known: dict[str, CounterSet] = {}
    for counter_set in counter_sets:
        if counter_set.name in known:
            return f"duplicate counter set {counter_set.name}"
        known[counter_set.name] = counter_set
    return next(filter(None, (_unknown_counter(device, known) for device in all_devices)), None)


def _unknown_counter(device: PoolDevice, known: Mapping[str, CounterSet]) -> str | None:
    for consumption in device.device.consumes_counters:
        counter_set = known.get(consumption.counter_set)
        if counter_set is None:
            return f"device {device.id.device} consumes of an unknown counter set {consumption.counter_set}"
        for name in consumption.counters:
            if name not in counter_set.counters:
                return f"device {device.id.device} consumes an unknown counter {consumption.counter_set}/{name}"
    return None


_SLICES_TO_NAME = 64
"""Of a pool with more slices than this every node is said to have changed, instead of each by its name."""


class SliceIndex(ClusterIndex):
    """All slices, by pool and by node."""

    kinds = frozenset({"ResourceSlice", "DeviceTaintRule"})
    keeps_more = True

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
        self.troubled: dict[PoolID, Pool] = {}
        """Pools with counters from which nothing can be taken, as nodes without a device of theirs see them."""

    def candidates(self, node_name: str) -> Iterator[PublishedSlice]:
        """Slices of this node, and all that are not of one node."""
        yield from self._local.get(node_name, {}).values()
        yield from self._shared.values()

    def counters_of(self, pool: PoolID) -> list[PublishedSlice]:
        return _with_counters(self.of_pool(pool))

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
            changed = [rule for rule in (self._rules.get(new.name), new) if rule is not None]
            self._rules[new.name] = new
            self._refresh(changed)
            return
        self._drop(new.name)
        self._keep(new)

    def object_removed(self, kind: str, obj: Any) -> None:
        if kind == "DeviceTaintRule":
            self._rules.pop(obj.name, None)
            self._refresh([obj])
            return
        self._drop(obj.name)

    def _keep(self, published: ResourceSlice) -> None:
        pool = PoolID(published.spec.driver, published.spec.pool.name)
        rules = [self._rules[name] for name in sorted(self._rules) if may_select(self._rules[name], pool)]
        prepared = PublishedSlice(published, rules)
        self._published[published.name] = published
        self._pools.setdefault(prepared.pool, {})[prepared.name] = prepared
        self._home(prepared)[prepared.name] = prepared
        self._touch(prepared)
        self._look_for_trouble(prepared.pool)

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
        self._look_for_trouble(pool)

    def _home(self, prepared: PublishedSlice) -> dict[str, PublishedSlice]:
        node_name = prepared.spec.node_name
        return self._local.setdefault(node_name, {}) if node_name else self._shared

    def _touch(self, changed: PublishedSlice) -> None:
        """Whether a pool is complete depends on all its slices, also on those of other nodes."""
        slices = self._pools[changed.pool]
        if len(slices) > _SLICES_TO_NAME:
            self._shared_version += 1
            self.log.touch(None)
            return
        for name in {prepared.spec.node_name or None for prepared in slices.values()}:
            self.log.touch(name)
            if name is not None:
                self._versions[name] = self._versions.get(name, 0) + 1
            else:
                self._shared_version += 1

    def _look_for_trouble(self, pool: PoolID) -> None:
        before = self.troubled.pop(pool, None)
        slices = self.of_pool(pool)
        counters = _with_counters(slices)
        seen = pool_of(pool, counters, slices.values()) if counters else None
        if seen is not None and not seen.is_usable:
            self.troubled[pool] = seen
        if before is not None or pool in self.troubled:
            self._shared_version += 1
            self.log.touch(None)

    def _refresh(self, rules: Sequence[DeviceTaintRule]) -> None:
        """Prepare the slices anew whose devices these rules may be about."""
        for pool in [pool for pool in self._pools if any(may_select(rule, pool) for rule in rules)]:
            for name in list(self._pools[pool]):
                published = self._published[name]
                self._drop(name)
                self._keep(published)


def _with_counters(slices: Mapping[str, PublishedSlice]) -> list[PublishedSlice]:
    return [published for published in slices.values() if published.spec.shared_counters]


class NodePools:
    """The pools with devices for a node, in the order in which they are searched."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = pools
        self.has_problems = any(pool.problem is not None for pool in pools)
        self.candidates: list[tuple[Pool, PoolDevice]] = [
            (pool, device) for pool in pools if pool.is_usable for device in pool.devices
        ]
        """What a request for a number of devices can choose from."""

    @cached_property
    def content(self) -> Hashable | None:
        """The same for nodes whose devices differ in nothing but names; None if not all devices are for the node."""
        if any(device.per_device_nodes for pool in self.pools for device in pool.devices):
            return None
        return tuple(_content(pool) for pool in self.pools)


def _content(pool: Pool) -> Hashable:
    devices = tuple([device.content for device in pool.devices])
    # Devices that several nodes can use are not equal to others, but the same.
    identity = None if all(device.is_node_local for device in pool.devices) else pool.id
    return pool.id.driver, identity, pool.is_complete, pool.problem is None, repr(pool.counters()), devices


def pools_for(index: SliceIndex, node: Node, budget: Budget = UNLIMITED) -> NodePools:
    """All that a node can use, as far as it is published."""
    seen: dict[PoolID, list[PublishedSlice]] = {}
    for published in index.candidates(node.name):
        budget.spend(1 + len(published.devices))
        if not published.spec.shared_counters and _is_for(published, node):
            seen.setdefault(published.pool, []).append(published)
    pools = [
        pool_of(pool, [*slices, *index.counters_of(pool)], index.of_pool(pool).values())
        for pool, slices in seen.items()
    ]
    pools += [troubled for pool, troubled in index.troubled.items() if pool not in seen]
    return NodePools(sorted(filter(None, pools), key=lambda pool: (pool.has_binding_conditions, pool.id)))


def usable_devices(index: SliceIndex, node: Node) -> Iterator[PoolDevice]:
    """Every device that is published for this node, whatever the state of its pool."""
    for published in index.candidates(node.name):
        if published.spec.per_device_node_selection:
            yield from (device for device in published.devices if device_is_for(device, node))
        elif _is_for(published, node):
            yield from published.devices


def _is_for(published: PublishedSlice, node: Node) -> bool:
    spec = published.spec
    if spec.per_device_node_selection:
        return any(device_is_for(device, node) for device in published.devices)
    return _selects(node, spec.node_name, spec.all_nodes, spec.node_selector)


def device_is_for(device: PoolDevice, node: Node) -> bool:
    """For slices whose devices say for themselves which nodes can use them."""
    return _selects(node, device.device.node_name, device.device.all_nodes, device.device.node_selector)


def _selects(node: Node, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    if node_name:
        return node_name == node.name
    if all_nodes:
        return True
    return selector is not None and any(term_matches(term, node) for term in selector.node_selector_terms)
