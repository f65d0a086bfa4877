"""The devices that drivers publish, found by the node that can use them.

A version per node tells whether anything that a node can use has changed. Counters are for all nodes: a pool with
counters that is incomplete or wrong keeps every node from using "all devices", wherever its own devices are. Such pools
are few, and known here (`troubled`), so that a node need not look at the counters of all the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pilotage.api import ClusterIndex
from pilotage.change_log import ChangeLog
from pilotage.model.resource import DeviceTaintRule, ResourceSlice
from pilotage.plugins.dynamic_resources.device_ids import PoolID
from pilotage.plugins.dynamic_resources.device_taints import may_select
from pilotage.plugins.dynamic_resources.pool import Pool, pool_of
from pilotage.plugins.dynamic_resources.published import PublishedSlice

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
