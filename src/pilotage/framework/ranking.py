"""Total and place of every node in one number, so that the largest number is the node to take.

    key = total * 2^bits + place            REFUSED where the pod does not fit

The place says who wins a tie; it depends on which nodes are feasible, not on their totals. Keys are kept
for a class of pods: after a pod was placed one key changes, and the next choice is one look for the maximum. Scores
that are asked for every pod are added on top, shifted by `bits`, and leave the places alone.

kube-scheduler puts the feasible nodes into a binary heap by total score and takes the root; ties are therefore not
random. The root of a heap built bottom-up with strict comparisons is, among the best, the one that comes first in a
pre-order walk of the tree: a parent beats its children, the left child beats the right one. We compute that directly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pilotage.api.table import Mask, Rows, Scores
from pilotage.cluster.node_table import NodeTable

REFUSED = -1
"""The total of a row on which the pod does not fit."""


def choose(totals: Scores, nodes: NodeTable, found: Rows | None = None) -> int | None:
    """The row to take, or None if no row is feasible.

    The feasible nodes are listed in the order of all nodes, or in that of `found`, the walk that came to them.
    """
    if not len(totals):
        return None
    best = totals.max()
    if best == REFUSED:
        return None
    tied = np.flatnonzero(totals == best)
    if len(tied) == 1:
        return int(tied[0])
    walk = heap_walk(len(totals))
    ranks = _feasible_rank(totals, tied, nodes) if found is None else _rank_in(found, tied, len(totals))
    return int(tied[walk[ranks].argmin()])


def _rank_in(found: Rows, tied: Rows, size: int) -> Rows:
    ranks = np.empty(size, dtype=np.int64)
    ranks[found] = np.arange(len(found))
    return ranks[tied]


def _feasible_rank(totals: Scores, tied: NDArray[np.int64], nodes: NodeTable) -> NDArray[np.int64]:
    """DryRunNode of each tied row in the list of feasible nodes."""
    positions = nodes.positions
    if totals.min() != REFUSED:
        return positions[tied]
    feasible_in_order = (totals != REFUSED)[nodes.order]
    rank: NDArray[np.int64] = (np.cumsum(feasible_in_order) - 1)[positions[tied]]
    return rank


def places(feasible: Mask, nodes: NodeTable) -> Scores:
    """A number per row: of feasible rows with equal totals, that with the largest is taken."""
    ranks = nodes.positions
    if not feasible.all():
        # Rows that are not feasible may get any number, within bounds.
        ranks = np.maximum(np.cumsum(feasible[nodes.order]) - 1, 0)[ranks]
    reversed_walk: Scores = len(feasible) - 1 - heap_walk(len(feasible))[ranks]
    return reversed_walk


@lru_cache(maxsize=64)
def heap_walk(size: int) -> NDArray[np.int64]:
    """For each index of a binary heap its number in a pre-order walk; only the order of the numbers matters."""
    numbers = np.arange(1, size + 1)
    depth = np.frexp(numbers)[1].astype(np.int64)
    # Left-aligned, the binary path from the root sorts in pre-order; of two equal ones the shorter is the ancestor.
    aligned = numbers << (depth.max() - depth)
    walk = np.empty(size, dtype=np.int64)
    walk[np.lexsort((depth, aligned))] = np.arange(size)
    return walk


_KEY_BITS = 62


class Best(NamedTuple):
    """The node to take."""

    row: int
    total: int


class Ranking:
    """Keys of all rows for one class of pods; void as soon as another set of rows is feasible."""

    __slots__ = ("_order", "_places", "bits", "feasible", "keys", "rows")

    def __init__(self, nodes: NodeTable, feasible: Mask, totals: Scores) -> None:
        self.bits = len(nodes).bit_length()
        self.feasible = feasible
        self.rows: Rows = np.flatnonzero(feasible)
        """The feasible ones."""
        self._order = nodes.positions
        self._places = places(feasible, nodes)
        self.keys: Scores = np.where(feasible, (totals << self.bits) | self._places, REFUSED)

    def is_valid(self, nodes: NodeTable) -> bool:
        """Are the nodes still walked in the same order?"""
        return self._order is nodes.positions

    def set_total(self, row: int, total: int) -> None:
        """A row that is not feasible is left alone."""
        if self.keys.item(row) != REFUSED:
            self.keys[row] = (total << self.bits) | self._places.item(row)

    def set_totals(self, rows: Rows, totals: Scores) -> None:
        """The same of several."""
        feasible = self.keys[rows] != REFUSED
        rows = rows[feasible]
        self.keys[rows] = (totals[feasible] << self.bits) | self._places[rows]

    def best(self) -> Best | None:
        """The row to take, or None if no row is feasible."""
        row = int(self.keys.argmax())
        key = self.keys.item(row)
        return None if key == REFUSED else Best(row, key >> self.bits)

    def keys_of_rows(self) -> Scores:
        """Those of the feasible rows; not to be written to."""
        return self.keys if len(self.rows) == len(self.keys) else self.keys[self.rows]

    def best_of(self, keys: Scores) -> Best:
        """The same after something was added to the keys of the feasible rows."""
        at = int(keys.argmax())
        return Best(self.rows.item(at), keys.item(at) >> self.bits)


def can_be_ranked(node_count: int, most_points: int) -> bool:
    """Do totals and places fit into one number? They do unless weights are absurd."""
    return most_points.bit_length() + node_count.bit_length() <= _KEY_BITS
