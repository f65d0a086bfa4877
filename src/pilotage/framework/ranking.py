"""Total and place of every node in one number, so that the largest number is the node to take.

    key = total * 2^bits + place            REFUSED where the pod does not fit

The place says who wins a tie (see `choice`); it depends on which nodes are feasible, not on their totals. Keys are kept
for a class of pods: after a pod was placed one key changes, and the next choice is one look for the maximum. Scores
that are asked for every pod are added on top, shifted by `bits`, and leave the places alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pilotage.api.table import Mask, Rows, Scores
from pilotage.cluster.node_table import NodeTable
from pilotage.framework.choice import REFUSED, places

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
