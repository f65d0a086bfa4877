"""Topology domains: the values of a node label, numbered, and which node is in which.

Labels of nodes change rarely compared with pods. What follows from them is kept until a node comes, goes, or changes
its labels or taints (`NodeFacts.version`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pilotage.api import ClusterIndex, Handle, NodeTable
from pilotage.model import Node
from pilotage.plugins.node_label_keys import NodeLabelKeys

MISSING = -1

Slots = NDArray[np.intp]


_KEPT_KEYS = 256


class NodeFacts(ClusterIndex):
    """Counts the changes of nodes that can matter to a topology."""

    def __init__(self) -> None:
        self.version = 0

    def node_put(self, old: Node | None, new: Node) -> None:
        if old is None or old.labels != new.labels or old.spec.taints != new.spec.taints:
            self.version += 1

    def node_removed(self, node: Node) -> None:
        self.version += 1


class SpreadDomains:
    """The domains of one topology key."""

    __slots__ = ("_slot_of", "is_complete", "slots", "values")

    def __init__(self, key: str, nodes: NodeTable) -> None:
        codes, values = nodes.labels(key)
        # The table keeps codes of values that no node has any more. The last entry stands for a missing label.
        in_use = np.zeros(len(values) + 1, dtype=np.bool_)
        in_use[codes] = True
        in_use[MISSING] = False
        slot_of_code = np.full(len(in_use), MISSING, dtype=np.intp)
        slot_of_code[in_use] = np.arange(np.count_nonzero(in_use))
        self.slots: Slots = slot_of_code[codes]
        """For each node its domain; MISSING where it lacks the label."""
        self.values: Sequence[str] = [values[code] for code in np.flatnonzero(in_use).tolist()]
        self.is_complete = not bool((codes == MISSING).any())
        self._slot_of: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def slot(self, value: str) -> int | None:
        if self._slot_of is None:
            self._slot_of = {known: slot for slot, known in enumerate(self.values)}
        return self._slot_of.get(value)

    def slots_of(self, nodes: NodeTable) -> Slots:
        """The domains of just the nodes of a table."""
        slots: Slots = nodes.pick(self.slots)
        return slots


class SpreadTopology:
    """The domains of the topology keys in use."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._facts = handle.index(NodeFacts)
        self._keys = handle.index(NodeLabelKeys)
        self._domains: dict[str, SpreadDomains] = {}
        self._version = -1

    @property
    def version(self) -> int:
        """Changes when anything about the topology may have changed."""
        return self._facts.version

    def has_key(self, key: str) -> bool:
        """Whether a node has this label."""
        return key in self._keys

    def domains(self, key: str) -> SpreadDomains:
        if self._version != self._facts.version or len(self._domains) >= _KEPT_KEYS:
            self._domains.clear()
            self._version = self._facts.version
        known = self._domains.get(key)
        if known is None:
            known = self._domains[key] = SpreadDomains(key, self._handle.nodes)
        return known
