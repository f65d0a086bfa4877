"""Which nodes count for the constraints of a pod, and how pods per node become pods per domain.

This follows from the pod's spec and the nodes' labels and taints, not from the pods on the nodes; it is kept per spec
until the topology changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pilotage.api import Budget, Handle, Mask, NodeTable, Scores
from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec
from pilotage.plugins.node_selection import required_mask
from pilotage.plugins.pod_topology_spread.constraints import Constraints, SpreadConstraint
from pilotage.plugins.pod_topology_spread.domains import MISSING, Slots, SpreadDomains, SpreadTopology
from pilotage.plugins.tolerations import first_untolerated

_KEPT_CONSTRAINTS = 1024
"""So many constraints are kept together; in a usual pod there are one or two."""
_STEPS_PER_COLUMN = 16


class Counting:
    """How to count pods by domain for one constraint: over which nodes, each in which slot."""

    __slots__ = ("_rows", "_slots", "known", "known_count", "size")

    def __init__(self, slots: Slots, size: int, counted: Mask | None) -> None:
        self._rows = None if counted is None or counted.all() else np.flatnonzero(counted)
        self._slots = slots if self._rows is None else slots[self._rows]
        self.size = size
        present = np.zeros(size, dtype=np.bool_)
        present[self._slots] = True
        self.known_count = int(np.count_nonzero(present))
        self.known = None if self.known_count == size else present
        """Domains that have a counted node; None if all have."""

    def sums(self, pods: Scores | None) -> Scores:
        """Pods per domain from pods per node; None stands for no pods."""
        if pods is None:
            return np.zeros(self.size, dtype=np.int64)
        weights = pods if self._rows is None else pods[self._rows]
        return np.bincount(self._slots, weights=weights, minlength=self.size).astype(np.int64)

    def lowest(self, sums: Scores) -> int | None:
        """The smallest number of pods in a known domain; None if none is known."""
        if not self.known_count:
            return None
        return int(sums.min() if self.known is None else sums[self.known].min())


class Layout(Struct, frozen=True):
    """What the constraints of a pod see of the nodes; one entry per constraint."""

    domains: tuple[SpreadDomains, ...]
    groups: tuple[Slots, ...]
    """Like `domains[i].slots`, but nodes without the label are in the domain "" if the layout includes them."""
    counting: tuple[Counting, ...]
    complete: Mask | None
    """Nodes that have all topology keys; None if all nodes do."""


NOWHERE: Final = Layout((), (), (), np.zeros(0, dtype=np.bool_))
"""No node has all topology keys, and nodes that lack one do not count: there is nothing to be counted anywhere."""


class Layouts:
    """Layouts by pod spec."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._topology = SpreadTopology(handle)
        self._known: dict[tuple[PodSpec, str], Layout] = {}
        self._kept = 0
        self._version = -1

    def of(self, pod: Pod, action: str, constraints: Constraints, budget: Budget, *, requires_all_keys: bool) -> Layout:
        """`constraints` are the pod's constraints of that action; nodes that lack a key may be left out or not.

        NOWHERE if they are left out, and that is all of them.
        """
        if requires_all_keys and not all(map(self._topology.has_key, constraints.keys)):
            return NOWHERE
        if self._version != self._topology.version or self._kept >= _KEPT_CONSTRAINTS:
            self._known.clear()
            self._kept = 0
            self._version = self._topology.version
        key = (pod.spec, action)
        known = self._known.get(key)
        if known is None:
            known = self._layout(pod, constraints, requires_all_keys, budget)
            self._known[key] = known
            self._kept += len(constraints)
        return known

    def _layout(self, pod: Pod, constraints: Constraints, requires_all_keys: bool, budget: Budget) -> Layout:
        nodes = self._handle.nodes
        domains: list[SpreadDomains] = []
        complete: Mask | None = None
        for constraint in constraints:
            budget.spend(_STEPS_PER_COLUMN + len(nodes) // 4)
            domains.append(self._topology.domains(constraint.topology_key))
            complete = _still_complete(complete, domains[-1])
            if requires_all_keys and complete is not None and not complete.any():
                return NOWHERE
        grouped = [(d.slots, len(d)) if requires_all_keys else _grouped(d) for d in domains]
        counted = _Counted(pod, nodes, complete if requires_all_keys else None)
        counting = []
        for constraint, (slots, size) in zip(constraints, grouped, strict=True):
            budget.spend(_STEPS_PER_COLUMN + len(nodes) // 8)
            counting.append(Counting(slots, size, counted.by(constraint)))
        return Layout(tuple(domains), tuple(slots for slots, _ in grouped), tuple(counting), complete)


def _still_complete(complete: Mask | None, domains: SpreadDomains) -> Mask | None:
    """Those of the nodes (None: of all) that have this key too."""
    if domains.is_complete:
        return complete
    has_key: Mask = domains.slots != MISSING
    return has_key if complete is None else complete & has_key


def _grouped(domains: SpreadDomains) -> tuple[Slots, int]:
    """Nodes without the label count as if its value were empty."""
    if domains.is_complete:
        return domains.slots, len(domains)
    empty = domains.slot("")
    if empty is None:
        empty = len(domains)
    slots: NDArray[np.intp] = np.where(domains.slots == MISSING, empty, domains.slots)
    return slots, max(len(domains), empty + 1)


class _Counted:
    """The nodes whose pods count, by the inclusion policies of a constraint: there are four combinations."""

    def __init__(self, pod: Pod, nodes: NodeTable, within: Mask | None) -> None:
        self._pod = pod
        self._nodes = nodes
        self._within = within
        self._known: dict[tuple[bool, bool], Mask | None] = {}

    def by(self, constraint: SpreadConstraint) -> Mask | None:
        """None: all of them."""
        policies = (constraint.honors_affinity, constraint.honors_taints)
        if policies not in self._known:
            self._known[policies] = self._mask(*policies)
        return self._known[policies]

    def _mask(self, honors_affinity: bool, honors_taints: bool) -> Mask | None:
        pod, masks = self._pod, [] if self._within is None else [self._within]
        if honors_affinity and (pod.spec.node_selector or pod.spec.affinity is not None):
            masks.append(required_mask(pod, self._nodes))
        if honors_taints:
            masks.append(_tolerated(pod, self._nodes))
        counted: Mask | None = np.logical_and.reduce(masks) if masks else None
        return counted


def _tolerated(pod: Pod, nodes: NodeTable) -> Mask:
    codes, taint_sets = nodes.taint_sets()
    tolerated = [first_untolerated(taints, pod.spec) is None for taints in taint_sets]
    return np.array(tolerated, dtype=np.bool_)[codes]
