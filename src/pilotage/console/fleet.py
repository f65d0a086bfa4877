"""All nodes as cells of a heat map: by the share that is requested of a resource, in groups by a label."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pilotage.console.source import ConsoleSource

ZONE: Final = "topology.kubernetes.io/zone"
_PODS: Final = "pods"
_DEVICES: Final = "devices of "
"""Before the name of a driver: devices that are allocated, of those that it offers on a node."""
_MOST_GROUPS: Final = 200
_LABELS_OF: Final = 50
"""Nodes that are asked for the resources and labels to choose from."""
_MOST_LABELS: Final = 100
_WITHOUT: Final = "without"
_NOTHING: Final = 255
_FULL: Final = 95


class Fleet:
    """The nodes as a heat map."""

    def __init__(self, source: ConsoleSource, resource: str, group: str) -> None:
        self._source = source
        self._nodes = source.cluster.nodes
        self._resource = resource
        self._label = group
        codes, values = self._nodes.labels(group)
        present = np.unique(codes).tolist()
        self.is_grouped = len(present) <= _MOST_GROUPS
        names = {code: (values[code] if 0 <= code < len(values) else "") or _WITHOUT for code in present}
        order = sorted(present, key=lambda code: (names[code] == _WITHOUT, names[code]))
        self._group_names = [names[code] for code in order] if self.is_grouped else ["all nodes"]
        """By rank: groups stand in the order of their names."""
        ranks = dict(zip(order, range(len(order)), strict=True)) if self.is_grouped else {}
        self._codes = np.array([ranks.get(code, 0) for code in codes.tolist()], dtype=np.int64)
        self._order = np.argsort(self._codes, kind="stable")

    def resources(self) -> list[str]:
        offered: dict[str, None] = dict.fromkeys(("cpu", "memory", "ephemeral-storage", _PODS, self._resource))
        for row in self._some_rows():
            offered |= dict.fromkeys(self._nodes.node(row).status.allocatable)
        for one in self._slices():
            if one.spec.node_name:
                offered[f"{_DEVICES}{one.spec.driver}"] = None
        return sorted(offered)

    def labels(self) -> list[str]:
        """Keys to group by."""
        keys = {key for row in self._some_rows() for key in self._nodes.node(row).labels}
        return sorted({ZONE, *keys})[:_MOST_LABELS]

    def _some_rows(self) -> set[int]:
        count = len(self._nodes)
        return {int(row) for row in np.linspace(0, count - 1, min(count, _LABELS_OF))} if count else set()

    def _slices(self) -> list[Any]:
        return [*self._source.cluster.objects("ResourceSlice").values()]

    def shares(self) -> NDArray[np.uint8]:
        """Requested of allocatable in percent, at most 250; 255 where there is none of it."""
        nodes = self._nodes
        if self._resource == _PODS:
            have, used = nodes.allocatable(_PODS), nodes.pod_count
        elif self._resource.startswith(_DEVICES):
            have, used = self._devices(self._resource.removeprefix(_DEVICES))
        else:
            have, used = nodes.allocatable(self._resource), nodes.requested(self._resource)
        percent = np.where(have > 0, np.minimum(250, 100 * used / np.maximum(have, 1)), _NOTHING)
        return percent.astype(np.uint8)

    def _devices(self, driver: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Devices of a driver by node: offered there, and allocated. Those that nodes share are on none."""
        have, used = (np.zeros(len(self._nodes), dtype=np.int64) for _ in range(2))
        rows: dict[str, int] = {}
        for one in self._slices():
            row = self._nodes.row(one.spec.node_name) if one.spec.node_name and one.spec.driver == driver else None
            if row is not None:
                rows[one.spec.pool.name] = row
                have[row] += len(one.spec.devices)
        for pool, count in self._allocated(driver).items():
            if pool in rows:
                used[rows[pool]] += count
        return have, used

    def _allocated(self, driver: str) -> Counter[str]:
        """Devices by pool; one that several share is one."""
        claims = self._source.cluster.objects("ResourceClaim").values()
        allocations = [claim.status.allocation for claim in claims if claim.status.allocation is not None]
        results = (result for allocation in allocations for result in allocation.devices.results)
        devices = {(one.pool, one.device) for one in results if one.driver == driver and not one.admin_access}
        return Counter(pool for pool, _ in devices)

    def names(self) -> dict[str, Any]:
        """What stays the same as long as no node comes, goes or changes its group."""
        groups = [
            {"name": self._group_names[int(code)], "nodes": int(count)}
            for code, count in zip(*np.unique(self._codes, return_counts=True), strict=True)
        ]
        names = [self._nodes.names[row] for row in self._order.tolist()]
        return {
            "names": names,
            "groups": groups,
            "resource": self._resource,
            "label": self._label,
            "is_grouped": self.is_grouped,
            "most_groups": _MOST_GROUPS,
        }

    def values(self) -> dict[str, Any]:
        """What changes with every pod, small enough to be sent every other second; and the same as a table."""
        shares = self.shares()
        return {
            "values": base64.b64encode(shares[self._order].tobytes()).decode(),
            "rows": [self._row(code, shares) for code in np.unique(self._codes).tolist()],
            "label": self._label if self.is_grouped else "",
            "resource": self._resource,
        }

    def _row(self, code: int, shares: NDArray[np.uint8]) -> dict[str, Any]:
        members = self._codes == code
        mine = shares[members & (shares != _NOTHING)]
        return {
            "name": self._group_names[code],
            "nodes": int(members.sum()),
            "mean": float(mine.mean()) if len(mine) else None,
            "full": int((mine >= _FULL).sum()),
            "empty": int((mine == 0).sum()),
            "unschedulable": int(self._nodes.unschedulable[members].sum()),
        }
