"""Which nodes have a CSI driver."""

from __future__ import annotations

from pilotage.api import ClusterIndex
from pilotage.model.storage import CSINode


class InstalledDrivers(ClusterIndex):
    kinds = frozenset({"CSINode"})

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, None]] = {}
        self._frozen: dict[str, frozenset[str]] = {}

    def object_put(self, kind: str, old: CSINode | None, new: CSINode) -> None:
        if old is not None:
            self.object_removed(kind, old)
        for driver in new.spec.drivers:
            self._nodes.setdefault(driver.name, {})[new.name] = None
            self._frozen.pop(driver.name, None)

    def object_removed(self, kind: str, obj: CSINode) -> None:
        for driver in obj.spec.drivers:
            self._nodes[driver.name].pop(obj.name, None)
            self._frozen.pop(driver.name, None)

    def nodes_of(self, driver: str) -> frozenset[str]:
        known = self._frozen.get(driver)
        if known is None:
            known = self._frozen[driver] = frozenset(self._nodes.get(driver, ()))
        return known
