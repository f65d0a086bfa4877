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

    __slots__ = ("_order", "_places", "bits", "keys")

    def __init__(self, nodes: NodeTable, feasible: Mask, totals: Scores) -> None:
        self.bits = len(nodes).bit_length()
        self._order = nodes.positions
        self._places = places(feasible, nodes)
        self.keys: Scores = np.where(feasible, (totals << self.bits) | self._places, REFUSED)

    def is_valid(self, nodes: NodeTable) -> bool:
        """Are the nodes still walked in the same order?"""
        return self._order is nodes.positions

    def set_total(self, row: int, total: int) -> None:
        """Of a feasible row that stays feasible."""
        self.keys[row] = (total << self.bits) | self._places.item(row)

    def set_totals(self, rows: Rows, totals: Scores) -> None:
        """The same of several; those that are not feasible are left alone."""
        feasible = self.keys[rows] != REFUSED
        rows = rows[feasible]
        self.keys[rows] = (totals[feasible] << self.bits) | self._places[rows]

    def best(self) -> Best | None:
        """The row to take, or None if no row is feasible."""
        row = int(self.keys.argmax())
        key = self.keys.item(row)
        return None if key == REFUSED else Best(row, key >> self.bits)

    def keys_of(self, rows: Rows) -> Scores:
        """Not to be written to."""
        return self.keys if len(rows) == len(self.keys) else self.keys[rows]

    def best_of(self, keys: Scores, rows: Rows) -> Best:
        """The same of feasible rows to whose keys something was added."""
        at = int(keys.argmax())
        return Best(rows.item(at), keys.item(at) >> self.bits)


def can_be_ranked(node_count: int, most_points: int) -> bool:
    """Do totals and places fit into one number? They do unless weights are absurd."""
    return most_points.bit_length() + node_count.bit_length() <= _KEY_BITS
