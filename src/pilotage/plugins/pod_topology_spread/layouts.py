"""Which nodes count for the constraints of a pod, and how pods per node become pods per domain.

This follows from the pod's spec and the nodes' labels and taints, not from the pods on the nodes; it is kept per spec
until the topology changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pilotage.api import Handle, Mask, NodeTable, Scores
from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec
from pilotage.plugins.node_selection import required_mask
from pilotage.plugins.pod_topology_spread.constraints import Constraint, Constraints
from pilotage.plugins.pod_topology_spread.domains import MISSING, Domains, Slots, Topology
from pilotage.plugins.tolerations import first_untolerated

_KEPT = 512


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


@dataclass(frozen=True, slots=True)
class Layout:
    """What the constraints of a pod see of the nodes; one entry per constraint."""

    domains: tuple[Domains, ...]
    groups: tuple[Slots, ...]
    """Like `domains[i].slots`, but nodes without the label are in the domain "" if the layout includes them."""
    counting: tuple[Counting, ...]
    complete: Mask | None
    """Nodes that have all topology keys; None if all nodes do."""


class Layouts:
    """Layouts by pod spec."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._topology = Topology(handle)
        self._known: dict[tuple[PodSpec, str], Layout] = {}
        self._version = -1

    def of(self, pod: Pod, action: str, constraints: Constraints, *, requires_all_keys: bool) -> Layout:
        """`constraints` are the pod's constraints of that action; nodes that lack a key may be left out or not."""
        if self._version != self._topology.version or len(self._known) >= _KEPT:
            self._known.clear()
            self._version = self._topology.version
        key = (pod.spec, action)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._layout(pod, constraints, requires_all_keys)
        return known

    def _layout(self, pod: Pod, constraints: Constraints, requires_all_keys: bool) -> Layout:
        nodes = self._handle.nodes
        domains = tuple(self._topology.domains(constraint.topology_key) for constraint in constraints)
        complete = _complete(domains)
        grouped = [(d.slots, len(d)) if requires_all_keys else _grouped(d) for d in domains]
        counting = tuple(
            Counting(slots, size, _counted(pod, constraint, nodes, complete if requires_all_keys else None))
            for constraint, (slots, size) in zip(constraints, grouped, strict=True)
        )
        return Layout(domains, tuple(slots for slots, _ in grouped), counting, complete)


def _complete(domains: tuple[Domains, ...]) -> Mask | None:
    if all(d.is_complete for d in domains):
        return None
    mask: Mask = np.logical_and.reduce([d.slots != MISSING for d in domains])
    return mask


def _grouped(domains: Domains) -> tuple[Slots, int]:
    """Nodes without the label count as if its value were empty."""
    if domains.is_complete:
        return domains.slots, len(domains)
    empty = domains.slot("")
    if empty is None:
        empty = len(domains)
    slots: NDArray[np.intp] = np.where(domains.slots == MISSING, empty, domains.slots)
    return slots, max(len(domains), empty + 1)


def _counted(pod: Pod, constraint: Constraint, nodes: NodeTable, within: Mask | None) -> Mask | None:
    """The nodes whose pods count for a constraint: its inclusion policies."""
    masks = [] if within is None else [within]
    if constraint.honors_affinity and (pod.spec.node_selector or pod.spec.affinity is not None):
        masks.append(required_mask(pod, nodes))
    if constraint.honors_taints:
        masks.append(_tolerated(pod, nodes))
    counted: Mask | None = np.logical_and.reduce(masks) if masks else None
    return counted


def _tolerated(pod: Pod, nodes: NodeTable) -> Mask:
    codes, taint_sets = nodes.taint_sets()
    tolerated = [first_untolerated(taints, pod.spec.tolerations) is None for taints in taint_sets]
    return np.array(tolerated, dtype=np.bool_)[codes]
