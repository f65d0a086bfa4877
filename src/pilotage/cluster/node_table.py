"""All nodes as columns.

A row per node and a column per fact: allocatable and requested amounts per resource, number of pods, taint set, label
values. Adding or removing a pod touches one row. Every touched row is written to a change log, so that code that keeps
derived columns (the signature cache) recomputes just those rows: `changed_since(mark)`.

Rows are dense: removing a node moves the last row into its place, which counts as a change of structure. The order of
nodes that people see, and that breaks ties, is not the row order but `order`: round robin over zones, as in
kube-scheduler's snapshot.

    names      cpu alloc  cpu req   taints   zone
    node-1         4000       900        0      0
    node-2         4000       100        1      1
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pilotage.api.table import Codes, Mask, NodeTable, Scores
from pilotage.change_log import ChangeLog
from pilotage.cluster.columns import Amounts, CodedColumn, Column, DerivedColumns
from pilotage.cluster.label_columns import LabelColumns
from pilotage.cluster.lower_priority import LowerPriority
from pilotage.cluster.node_resources import node_allocatable
from pilotage.model import Node, Pod
from pilotage.model.node import Taint
from pilotage.model.pod_resources import assigned_requests, count_alike, requests_on_node

_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_of(node: Node) -> tuple[str, str]:
    """Region and zone of a node, ("", "") if it has neither."""
    return _first_label(node, _REGION_LABELS), _first_label(node, _ZONE_LABELS)


def _first_label(node: Node, keys: Sequence[str]) -> str:
    return next((node.labels[key] for key in keys if node.labels.get(key)), "")


Zone = tuple[str, str]


class ZoneTree:
    """Node names by zone. A zone has its turn from its first node to its last; a node keeps its place in its zone."""

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[str, None]] = {}

    def add(self, name: str, zone: Zone) -> None:
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str, zone: Zone) -> None:
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]

    def walk(self) -> list[str]:
        """The first node of every zone, then the second, ...; zones and nodes in the order of their arrival."""
        zones = [list(names) for names in self._zones.values()]
        depth = max(map(len, zones), default=0)
        return [names[level] for level in range(depth) for names in zones if level < len(names)]


_FIRST_CAPACITY = 64
_KEPT_PRIORITIES = 8
_MANY_NAMES = 64
_KEPT_SETS = 32
_SPARE_TAINT_SETS = 64
_SCORED = ("cpu", "memory")


class ClusterNodeTable:
    """The mutable table. Plugins see it through the read-only protocol `pilotage.api.NodeTable`."""

    def __init__(self) -> None:
        self._capacity = _FIRST_CAPACITY
        self._names: list[str] = []
        self._row_of: dict[str, int] = {}
        self._nodes: list[Node] = []
        self._pods: list[dict[str, Pod]] = []
        self._zones = ZoneTree()
        self._allocatable = Amounts(self._capacity)
        self.allocatable_at = self._allocatable.at
        self._count_by(Amounts(self._capacity), Amounts(self._capacity), Column(np.int64, self._capacity))
        self._unschedulable = Column(np.bool_, self._capacity)
        self._taints: CodedColumn[tuple[Taint, ...]] = CodedColumn(self._capacity)
        self._labels = LabelColumns(self._capacity)
        self._derived = DerivedColumns()
        self._log: ChangeLog[int] = ChangeLog()
        self.replaced: ChangeLog[int] = ChangeLog()
        """Those of the touched rows whose Node object is another one."""
        self.renewals: ChangeLog[int] = ChangeLog()
        """Rows on which a newer version of a pod counts the same, but is another one to a search for victims."""
        self._below: OrderedDict[int, LowerPriority] = OrderedDict()
        self._order: NDArray[np.int64] | None = None
        self._positions: NDArray[np.int64] | None = None
        self._rows_of_many: dict[frozenset[str], Mask] = {}
        self.structure = 0
        """Changes whenever rows are added or removed: derived columns are void then."""

    # --- reading -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._names)

    @property
    def names(self) -> Sequence[str]:
        return self._names

    def allocatable(self, resource: str) -> Scores:
        return self._allocatable.column(resource, len(self))

    def is_offered(self, resource: str) -> bool:
        return resource in self._allocatable

    def requested(self, resource: str) -> Scores:
        return self._requested.column(resource, len(self))

    def free(self, resource: str) -> Scores:
        free: Scores = self.allocatable(resource) - self.requested(resource)
        return free

    def non_zero_requested(self, resource: str) -> Scores:
        return (self._scored if resource in _SCORED else self._requested).column(resource, len(self))

    @property
    def pod_count(self) -> Scores:
        return self._pod_count.values(len(self))

    @property
    def unschedulable(self) -> Mask:
        return self._unschedulable.values(len(self))

    def labels(self, key: str) -> tuple[Codes, Sequence[str]]:
        return self._labels.column(key, self._nodes)

    def has_label(self, key: str) -> bool:
        return key in self._labels

    def taint_sets(self) -> tuple[Codes, Sequence[tuple[Taint, ...]]]:
        return self._taints.codes.values(len(self)), self._taints.distinct

    def rows_of(self, names: frozenset[str]) -> Mask:
        if not _MANY_NAMES <= len(names) <= len(self):
            return self._find_rows(names)
        # Indexes hand out the same large set again and again, and a set knows its hash.
        mask = self._rows_of_many.get(names)
        if mask is None:
            if len(self._rows_of_many) >= _KEPT_SETS:
                self._rows_of_many.clear()
            mask = self._rows_of_many[names] = self._find_rows(names)
        return mask.copy()

    def _find_rows(self, names: frozenset[str]) -> Mask:
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[[self._row_of[name] for name in names if name in self._row_of]] = True
        return mask

    def node(self, row: int) -> Node:
        return self._nodes[row]

    def pods_on(self, row: int) -> dict[str, Pod]:
        """Pods of a row by UID; not to be changed by the caller."""
        return self._pods[row]

    def row(self, name: str) -> int | None:
        return self._row_of.get(name)

    def everywhere(self, value: bool) -> Mask:
        return np.full(len(self), value, dtype=np.bool_)

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        return column

    def derived(self, key: Hashable, derive: Callable[[NodeTable], NDArray[Any]]) -> NDArray[Any]:
        return self._derived.column(key, derive, self)

    @property
    def order(self) -> NDArray[np.int64]:
        """Rows in the order in which kube-scheduler would walk the nodes."""
        if self._order is None:
            self._order = np.array([self._row_of[name] for name in self._zones.walk()], dtype=np.int64)
        return self._order

    @property
    def positions(self) -> NDArray[np.int64]:
        """For each row its place in `order`."""
        if self._positions is None:
            self._positions = np.empty(len(self), dtype=np.int64)
            self._positions[self.order] = np.arange(len(self))
        return self._positions

    # --- the change log ----------------------------------------------------------------------------------------

    @property
    def mark(self) -> int:
        """A point in the change log; everything up to here is known to the reader of now."""
        return self._log.mark

    def changed_since(self, mark: int) -> list[int] | None:
        """Rows touched since `mark`, each once; None if the log does not reach back that far."""
        return self._log.changed_since(mark)

    # --- nodes -------------------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add a node, or replace the object of a known one."""
        row = self._row_of.get(node.name)
        old = None if row is None else self._nodes[row]
        if row is None:
            row = self._append_row(node)
        elif (old_zone := zone_of(self._nodes[row])) != (zone := zone_of(node)):
            self._zones.remove(node.name, old_zone)
            self._zones.add(node.name, zone)
            self._forget_order()
        self._nodes[row] = node
        self._write_node_facts(row, old, node)
        self._log.touch(row)
        self.replaced.touch(row)

    def remove_node(self, name: str) -> list[Pod]:
        """Drop a node and return the pods that were on it."""
        row = self._row_of.pop(name)
        self._zones.remove(name, zone_of(self._nodes[row]))
        pods = list(self._pods[row].values())
        last = len(self._names) - 1
        self._labels.remove(row, self._nodes[row].labels, last, self._nodes[last].labels)
        for column in self._all_columns():
            column.move(last, row)
        self._names[row] = self._names[last]
        self._nodes[row] = self._nodes[last]
        self._pods[row] = self._pods[last]
        if row != last:
            self._row_of[self._names[row]] = row
        for rows in (self._names, self._nodes, self._pods):
            rows.pop()
        self._change_structure()
        return pods

    def _append_row(self, node: Node) -> int:
        row = len(self._names)
        if row == self._capacity:
            self._capacity *= 2
            for column in (*self._all_columns(), self._labels):
                column.reserve(self._capacity)
        self._names.append(node.name)
        self._nodes.append(node)
        self._pods.append({})
        self._zones.add(node.name, zone_of(node))
        self._row_of[node.name] = row
        self._change_structure()
        return row

    def _write_node_facts(self, row: int, old: Node | None, node: Node) -> None:
        if old is None or old.status.allocatable != node.status.allocatable:
            self._write_offered(row, {} if old is None else node_allocatable(old), node_allocatable(node))
        self._unschedulable[row] = node.spec.unschedulable
        self._write_taints(row, node)
        self._labels.put(row, None if old is None else old.labels, node.labels)

    def _write_offered(self, row: int, before: Mapping[str, int], now: Mapping[str, int]) -> None:
        for resource in before.keys() - now.keys():
            self._allocatable.set(row, resource, 0)
        for resource, amount in now.items():
            self._allocatable.set(row, resource, amount)

    def _write_taints(self, row: int, node: Node) -> None:
        # Two taints that differ only in the time they were added are the same to every scheduling rule.
        self._taints.set(row, _taints_of(node))
        if len(self._taints.distinct) > 2 * len(self._nodes) + _SPARE_TAINT_SETS:
            self._taints = CodedColumn(self._capacity)
            self._taints.fill(map(_taints_of, self._nodes))

    # --- pods --------------------------------------------------------------------------------------------------

    def add_pod(self, node_name: str, pod: Pod) -> bool:
        """Count a pod on a node; False if there is no such node."""
        row = self._row_of.get(node_name)
        if row is None:
            return False
        self._pods[row][pod.uid] = pod
        self._account(row, pod, 1)
        return True

    def remove_pod(self, node_name: str, pod: Pod) -> None:
        row = self._row_of.get(node_name)
        if row is None or self._pods[row].pop(pod.uid, None) is None:
            return
        self._account(row, pod, -1)

    def replace_pod(self, node_name: str, old: Pod, new: Pod) -> None:
        """The same pod with a newer object; costs nothing if it requests the same."""
        row = self._row_of.get(node_name)
        if row is None:
            return
        if count_alike(old, new):
            self._pods[row][new.uid] = new
            if (
                old.status.start_time != new.status.start_time
                or old.is_terminating != new.is_terminating
                or (old.labels is not new.labels and old.labels != new.labels)
            ):
                self.renewals.touch(row)
            return
        self.remove_pod(node_name, old)
        self.add_pod(node_name, new)

    def _account(self, row: int, pod: Pod, sign: int) -> None:
        requests = requested, scored = requests_on_node(pod)
        add = self._requested.add
        for resource, amount in requested.items():
            add(row, resource, sign * amount)
        add = self._scored.add
        add(row, "cpu", sign * scored[0])
        add(row, "memory", sign * scored[1])
        self._pod_count.add(row, sign)
        for below in self._below.values():
            if pod.priority < below.priority:
                below.account(row, requests, sign)
        self._log.touch(row)

    def below(self, priority: int) -> LowerPriority:
        """What the pods of lower priority take on each node; kept up to date for the priorities last asked for."""
        known = self._below.get(priority)
        if known is None:
            known = self._below[priority] = LowerPriority(priority, self._capacity)
            for row, pods in enumerate(self._pods):
                known.fill(row, pods.values())
            if len(self._below) > _KEPT_PRIORITIES:
                self._below.popitem(last=False)
        self._below.move_to_end(priority)
        return known

    @contextmanager
    def without_lower(self, priority: int) -> Iterator[Mapping[int, Mapping[str, Pod]]]:
        """Until the block ends, the rows are as if no pod below this priority were there.

        Returns which rows had such pods, and all pods that are really on them.

        Costs what a copy of the columns costs, whatever number of pods is imagined away. Only the table knows of
        it: indexes and classes of pods still count them. Whatever is put on rows in the block must be taken off again;
        but what became of the imagined pods (`add_pod` brings one back) is forgotten.
        """
        size, gone = len(self), self.below(priority)
        rows = np.flatnonzero(gone.count.values(size)).tolist()
        kept, kept_below = (self._requested, self._scored, self._pod_count), self._below
        pods = {row: self._pods[row] for row in rows}
        self._count_by(*gone.left_of(*kept))
        self._below = OrderedDict()
        for row, on_row in pods.items():
            self._pods[row] = {uid: pod for uid, pod in on_row.items() if pod.priority >= priority}
            self._log.touch(row)
        try:
            yield pods
        finally:
            self._count_by(*kept)
            self._below = kept_below
            for row, on_row in pods.items():
                self._pods[row] = on_row
                self._log.touch(row)

    def _count_by(self, requested: Amounts, scored: Amounts, pod_count: Column) -> None:
        self._requested, self._scored, self._pod_count = requested, scored, pod_count
        # Asked by per-node plugins several times for every pod: the shortest way.
        self.requested_at = requested.at
        self.scored_at = scored.at

    # --- columns -----------------------------------------------------------------------------------------------

    def _all_columns(self) -> Sequence[Column | Amounts | LowerPriority]:
        """But the labels."""
        amounts = (self._allocatable, self._requested, self._scored)
        return (*amounts, self._pod_count, self._unschedulable, self._taints.codes, *self._below.values())

    def _change_structure(self) -> None:
        self.structure += 1
        self._rows_of_many.clear()
        self._forget_order()

    def _forget_order(self) -> None:
        self._order = self._positions = None

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert len(self._names) == len(self._nodes) == len(self._pods) == len(self._row_of)
        assert all(self._names[row] == name for name, row in self._row_of.items())
        assert sorted(self.order) == list(range(len(self))), "every node is walked once"
        for row, pods in enumerate(self._pods):
            assert self._pod_count[row] == len(pods)
            for resource in self._requested.names():
                total = sum(assigned_requests(p).get(resource, 0) for p in pods.values())
                assert self._requested.at(row, resource) == total, resource
            for below in self._below.values():
                below.check(row, pods.values())


def _taints_of(node: Node) -> tuple[Taint, ...]:
    return tuple([Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints])
