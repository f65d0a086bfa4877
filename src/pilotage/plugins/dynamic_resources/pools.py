"""The pools of devices that a node can use.

Pools without binding conditions come first, then by driver and name: the search takes the first device that will do, so
this order decides who gets what.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property

from pilotage.api import Budget
from pilotage.api.budget import UNLIMITED
from pilotage.model import Node
from pilotage.model.selectors import NodeSelector
from pilotage.plugins.dynamic_resources.device_ids import PoolID
from pilotage.plugins.dynamic_resources.pool import Pool, pool_of
from pilotage.plugins.dynamic_resources.published import PoolDevice, PublishedSlice
from pilotage.plugins.dynamic_resources.slices import SliceIndex
from pilotage.plugins.node_selection import term_matches


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
