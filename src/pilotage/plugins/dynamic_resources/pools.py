"""The pools of devices that a node can use.

A pool is published in slices. Only those of the newest generation count, and the pool is complete when there are as
many of them as the driver announced. Pools without binding conditions come first, then by driver and name: the search
takes the first device that will do, so this order decides who gets what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from pilotage.model import Node
from pilotage.model.quantity import parse_quantity
from pilotage.model.resource import CounterSet
from pilotage.model.selectors import NodeSelector
from pilotage.plugins.dynamic_resources.device_ids import PoolID
from pilotage.plugins.dynamic_resources.slices import PoolDevice, PublishedSlice, SliceIndex
from pilotage.plugins.node_selection import term_matches

Counters = dict[str, dict[str, Fraction]]
"""Counter set -> counter -> amount."""


class Pool:
    """A pool as one node sees it."""

    __slots__ = ("_all_slices", "counter_sets", "devices", "has_binding_conditions", "id", "is_complete", "problem")

    def __init__(self, pool: PoolID, usable: list[PublishedSlice], everything: list[PublishedSlice]) -> None:
        self.id = pool
        self._all_slices = everything
        self.is_complete = bool(usable) and usable[0].spec.pool.resource_slice_count in (len(usable), len(everything))
        self.devices = tuple(device for published in usable for device in published.devices)
        self.counter_sets = [counters for published in everything for counters in published.spec.shared_counters]
        self.problem = _problem(self.devices, self.counter_sets)
        self.has_binding_conditions = any(device.device.binding_conditions for device in self.devices)

    def all_devices(self) -> Iterator[PoolDevice]:
        """Also those that only other nodes can use: they share the counters."""
        for published in self._all_slices:
            yield from published.devices

    def counters(self) -> Counters:
        """What the pool's devices may consume together."""
        return {
            counter_set.name: {name: parse_quantity(counter.value) for name, counter in counter_set.counters.items()}
            for counter_set in self.counter_sets
        }


class NodePools:
    """The pools with devices for a node, in the order in which they are searched."""

    __slots__ = ("candidates", "has_problems", "pools")

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = pools
        self.has_problems = any(pool.problem is not None for pool in pools)
        self.candidates: list[tuple[Pool, PoolDevice]] = [
            (pool, device) for pool in pools if pool.is_complete and pool.problem is None for device in pool.devices
        ]
        """What a request for a number of devices can choose from."""


def pools_for(index: SliceIndex, node: Node) -> NodePools:
    """All that a node can use, as far as it is published."""
    usable: dict[PoolID, list[PublishedSlice]] = {}
    for published in index.candidates(node.name):
        if _is_for(published, node):
            usable.setdefault(published.pool, []).append(published)
    pools = filter(None, (_pool(pool, slices, index.of_pool(pool)) for pool, slices in usable.items()))
    return NodePools(sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.id)))


def usable_devices(index: SliceIndex, node: Node) -> Iterator[PoolDevice]:
    """Every device that is published for this node, whatever the state of its pool."""
    for published in index.candidates(node.name):
        if published.spec.per_device_node_selection:
            yield from (device for device in published.devices if device_is_for(device, node))
        elif _is_for(published, node):
            yield from published.devices


def _pool(pool: PoolID, slices: Sequence[PublishedSlice], everything: Mapping[str, PublishedSlice]) -> Pool | None:
    newest = max(published.spec.pool.generation for published in slices)
    usable = sorted(_of_generation(slices, newest), key=lambda published: published.name)
    if len(usable) == usable[0].spec.pool.resource_slice_count:
        return Pool(pool, usable, sorted(_of_generation(everything.values(), newest), key=lambda s: s.name))
    if any(published.spec.pool.generation > newest for published in everything.values()):
        # A newer generation is being published, but not for this node (yet): what is here is out of date.
        return None
    return Pool(pool, usable, sorted(_of_generation(everything.values(), newest), key=lambda s: s.name))


def _of_generation(slices: Iterable[PublishedSlice], wanted: int) -> list[PublishedSlice]:
    return [published for published in slices if published.spec.pool.generation == wanted]


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


def _problem(devices: Sequence[PoolDevice], counter_sets: Sequence[CounterSet]) -> str | None:
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
    return next(filter(None, (_unknown_counter(device, known) for device in devices)), None)


def _unknown_counter(device: PoolDevice, known: Mapping[str, CounterSet]) -> str | None:
    for consumption in device.device.consumes_counters:
        counter_set = known.get(consumption.counter_set)
        if counter_set is None:
            return f"device {device.id.device} consumes of an unknown counter set {consumption.counter_set}"
        for name in consumption.counters:
            if name not in counter_set.counters:
                return f"device {device.id.device} consumes an unknown counter {consumption.counter_set}/{name}"
    return None
