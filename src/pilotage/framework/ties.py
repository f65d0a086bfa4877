"""Other rules for equally good nodes, for simulations: by chance, or by an order of all nodes that is drawn once.

kube-scheduler's own rule is in `shared_columns`.
"""

from __future__ import annotations

import random

import numpy as np

from pilotage.api.table import Mask, Rows, Scores
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.shared_columns import INFEASIBLE


class RandomTies:
    """Each equally likely, drawn anew for every pod: as kube-scheduler did before it had the heap."""

    def __init__(self, rng: random.Random) -> None:
        self.lots = rng

    def places(self, feasible: Mask, nodes: ClusterNodeTable) -> Scores:
        return np.zeros(len(feasible), dtype=np.int64)

    def among(self, tied: Rows, totals: Scores, nodes: ClusterNodeTable, found: Rows | None) -> int:
        return int(tied[self.lots.randrange(len(tied))])


class OrderedTies:
    """The first in an order of all nodes that is drawn once, and is the same for all pods."""

    lots = None

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.drawn: dict[str, float] = {}
        """Of nodes by name: a node that comes later finds its place between the others."""
        self._structure = -1
        self._places: Scores = np.zeros(0, dtype=np.int64)

    def places(self, feasible: Mask, nodes: ClusterNodeTable) -> Scores:
        if self._structure != nodes.structure:
            self._structure = nodes.structure
            self._places = np.empty(len(nodes), dtype=np.int64)
            lots = [self._lot(name) for name in nodes.names]
            self._places[np.argsort(np.array(lots), kind="stable")] = np.arange(len(nodes))
        return self._places

    def among(self, tied: Rows, totals: Scores, nodes: ClusterNodeTable, found: Rows | None) -> int:
        return int(tied[self.places(totals != INFEASIBLE, nodes)[tied].argmax()])

    def _lot(self, name: str) -> float:
        known = self.drawn.get(name)
        if known is None:
            known = self.drawn[name] = self._rng.random()
        return known
