"""Extended resources that devices serve, as resource scores see them: how many there are, and how many are taken.

A resource that a node offers by itself is counted as always. One that it does not offer, but that has a DeviceClass
behind it, is counted in devices that the node can use and that the class selects.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pilotage.api import Budget, Handle, NodeTable, NodeView, Scores
from pilotage.model import Node
from pilotage.model.resource import DeviceClass
from pilotage.plugins.device_classes import DeviceClassIndex, may_be_backed
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.devices import PoolDevice, SelectorError
from pilotage.plugins.dynamic_resources.slices import SliceIndex, usable_devices


class DeviceSupply:
    """Counts devices for resources that nodes do not offer by themselves."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def may_serve(self, resources: Collection[str]) -> bool:
        """Whether devices could serve any of these. Then what is free depends on more than one node."""
        return any(may_be_backed(resource) for resource in resources)

    def is_delegated(self, resource: str) -> bool:
        """Whether devices serve this resource where a node has none of it."""
        return may_be_backed(resource) and self._handle.index(DeviceClassIndex).class_for(resource) is not None

    def on(self, budget: Budget, node: NodeView, resource: str, used: int) -> tuple[int, int]:
        """Capacity and use of a resource on a node."""
        offered = node.allocatable(resource)
        device_class = None if offered else self._class(resource)
        return (offered, used) if device_class is None else self._count(budget, node.node, device_class)

    def columns(self, budget: Budget, nodes: NodeTable, resource: str, used: Scores) -> tuple[Scores, Scores]:
        """The same for all nodes."""
        offered = nodes.allocatable(resource)
        device_class = self._class(resource)
        if device_class is None:
            return offered, used
        offered, used = offered.copy(), used.copy()
        for row in np.flatnonzero(offered == 0).tolist():
            offered[row], used[row] = self._count(budget, nodes.node(row), device_class)
        return offered, used

    def _class(self, resource: str) -> DeviceClass | None:
        if not may_be_backed(resource):
            return None
        name = self._handle.index(DeviceClassIndex).class_for(resource)
        return None if name is None else self._handle.objects("DeviceClass").get(name)

    def _count(self, budget: Budget, node: Node, device_class: DeviceClass) -> tuple[int, int]:
        ledger = self._handle.index(ClaimBook).ledger
        capacity = taken = 0
        for device in usable_devices(self._handle.index(SliceIndex), node):
            budget.spend(1 + len(device_class.spec.selectors))
            if _selects(device_class, device):
                capacity += 1
                taken += device.id in ledger.taken or ledger.is_shared(device.id)
        return capacity, taken


def _selects(device_class: DeviceClass, device: PoolDevice) -> bool:
    """A selector that fails selects nothing: a score is no reason to stop."""
    try:
        return all(s.cel is not None and device.satisfies(s.cel.expression) for s in device_class.spec.selectors)
    except SelectorError:
        return False
