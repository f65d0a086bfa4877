"""What equal pods share: which nodes fit and how many points they get, brought up to date row by row.

For plugins that sign the pod the columns are kept per signature. When the next equal pod comes, only rows that changed
since are evaluated again, typically the one node that took the previous pod: a few rows are asked about one by one,
because NumPy's cost per call would exceed that of plain arithmetic.

The sum of the points is kept ranked, with total and place of every node in one number, so that the largest number is
the node to take:

    key = total * 2^bits + place            INFEASIBLE where the pod does not fit

The place says who wins a tie; it depends on which nodes are feasible, not on their totals. After a pod was placed one
key changes, and the next choice is one look for the maximum. Scores that are asked for every pod are added on top,
shifted by `bits`, and leave the places alone.

kube-scheduler puts the feasible nodes into a binary heap by total score and takes the root; ties are therefore not
random. The root of a heap built bottom-up with strict comparisons is, among the best, the one that comes first in a
pre-order walk of the tree: a parent beats its children, the left child beats the right one. We compute that directly.
Simulations may break ties by other rules (`ties`).
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from pilotage.api import points, table
from pilotage.api.plugin import RAISED, Sees
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows, Scores
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import RowView
from pilotage.framework.dry_run import filter_error
from pilotage.framework.node_questions import NodeQuestions, checked, checked_one, column_of, score_error, whole
from pilotage.framework.profile import NodeFilter, NodeScore, Plan, Profile, timed_plan
from pilotage.model import Pod

INFEASIBLE = -1
"""The total of a row on which the pod does not fit."""
_KEY_BITS = 62
_KEPT_SIGNATURES = 256
_FEW_ROWS = 8
_LOOK_AHEAD = 1024


class Ties(Protocol):
    """A rule by which ties are broken."""

    def places(self, feasible: Mask, nodes: ClusterNodeTable) -> Scores:
        """A number from 0 below the number of rows for each: of feasible rows with equal totals, the largest wins."""

    @property
    def lots(self) -> random.Random | None:
        """If it draws lots among those whose places are equal, too: with what."""

    def among(self, tied: Rows, totals: Scores, nodes: ClusterNodeTable, found: Rows | None) -> int:
        """One of these rows, whose totals are equal; `found` lists the feasible ones as a walk came to them."""


class HeapTies:
    """As kube-scheduler breaks them."""

    lots = None

    def places(self, feasible: Mask, nodes: ClusterNodeTable) -> Scores:
        return heap_places(feasible, nodes)

    def among(self, tied: Rows, totals: Scores, nodes: ClusterNodeTable, found: Rows | None) -> int:
        return _first_in_heap(tied, totals, nodes, found)


HEAP: Final = HeapTies()


def choose(totals: Scores, nodes: ClusterNodeTable, found: Rows | None = None, ties: Ties | None = None) -> int | None:
    """The row to take, or None if no row is feasible.

    The feasible nodes are listed in the order of all nodes, or in that of `found`, the walk that came to them. Without
    `ties`, they are broken as kube-scheduler breaks them.
    """
    if not len(totals):
        return None
    best = totals.max()
    if best == INFEASIBLE:
        return None
    tied = np.flatnonzero(totals == best)
    if len(tied) == 1:
        return int(tied[0])
    return (ties or HEAP).among(tied, totals, nodes, found)


def _first_in_heap(tied: Rows, totals: Scores, nodes: ClusterNodeTable, found: Rows | None) -> int:
    # The root comes before all others, and where nodes are alike it is among the best.
    root = _first_feasible(totals, nodes) if found is None else found.item(0)
    if totals[root] == totals[tied[0]]:
        return root
    walk = heap_walk(len(totals))
    ranks = _feasible_rank(totals, tied, nodes) if found is None else _rank_in(found, tied, len(totals))
    return int(tied[walk[ranks].argmin()])


def _first_feasible(totals: Scores, nodes: ClusterNodeTable) -> int:
    """The row that comes first in the list of feasible nodes; there is one."""
    order, begin = nodes.order, 0
    while not (feasible := totals[order[begin : begin + _LOOK_AHEAD]] != INFEASIBLE).any():
        begin += _LOOK_AHEAD
    return order.item(begin + int(feasible.argmax()))


def _rank_in(found: Rows, tied: Rows, size: int) -> Rows:
    ranks = np.empty(size, dtype=np.int64)
    ranks[found] = np.arange(len(found))
    return ranks[tied]


def _feasible_rank(totals: Scores, tied: Rows, nodes: ClusterNodeTable) -> NDArray[np.int64]:
    """Place of each tied row in the list of feasible nodes."""
    positions = nodes.positions
    if totals.min() != INFEASIBLE:
        return positions[tied]
    feasible_in_order = (totals != INFEASIBLE)[nodes.order]
    places = positions[tied]
    if len(tied) <= _FEW_ROWS:
        # To count what is True up to a place takes a fraction of what it takes to add it up for all places.
        return np.array([np.count_nonzero(feasible_in_order[:place]) for place in places.tolist()])
    return np.cumsum(feasible_in_order)[places] - 1


def heap_places(feasible: Mask, nodes: ClusterNodeTable) -> Scores:
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


class Best(NamedTuple):
    """The node to take."""

    row: int
    total: int


class Ranking:
    """Keys of all rows for one class of pods; void as soon as another set of rows is feasible."""

    __slots__ = ("_lots", "_order", "_places", "bits", "feasible", "keys", "rows")

    def __init__(self, nodes: ClusterNodeTable, feasible: Mask, totals: Scores, ties: Ties) -> None:
        self._lots = ties.lots
        self.bits = len(nodes).bit_length()
        self.feasible = feasible
        self.rows: Rows = np.flatnonzero(feasible)
        """The feasible ones."""
        self._order = nodes.positions
        self._places = ties.places(feasible, nodes)
        self.keys: Scores = np.where(feasible, (totals << self.bits) | self._places, INFEASIBLE)

    def is_valid(self, nodes: ClusterNodeTable) -> bool:
        """Whether the nodes are still walked in the same order."""
        return self._order is nodes.positions

    def set_total(self, row: int, total: int) -> None:
        """A row that is not feasible is left alone."""
        if self.keys.item(row) != INFEASIBLE:
            self.keys[row] = (total << self.bits) | self._places.item(row)

    def set_totals(self, rows: Rows, totals: Scores) -> None:
        """The same of several."""
        feasible = self.keys[rows] != INFEASIBLE
        rows = rows[feasible]
        self.keys[rows] = (totals[feasible] << self.bits) | self._places[rows]

    def best(self) -> Best | None:
        """The row to take, or None if no row is feasible."""
        row = self._largest(self.keys)
        key = self.keys.item(row)
        return None if key == INFEASIBLE else Best(row, key >> self.bits)

    def _largest(self, keys: Scores) -> int:
        at = int(keys.argmax())
        if self._lots is None:
            return at
        equals = np.flatnonzero(keys == keys[at])
        return int(equals[self._lots.randrange(len(equals))])

    def keys_of_rows(self) -> Scores:
        """Those of the feasible rows; not to be written to."""
        return self.keys if len(self.rows) == len(self.keys) else self.keys[self.rows]

    def best_of(self, keys: Scores) -> Best:
        """The same after something was added to the keys of the feasible rows."""
        at = self._largest(keys)
        return Best(self.rows.item(at), keys.item(at) >> self.bits)


def can_be_ranked(node_count: int, most_points: int) -> bool:
    """Whether totals and places fit into one number. They do unless weights are absurd."""
    return most_points.bit_length() + node_count.bit_length() <= _KEY_BITS


class SharedColumns(Struct, eq=False):
    """What is known of all nodes for one signature."""

    structure: int
    versions: tuple[Hashable, ...]
    mark: int
    replaced: int
    """The mark of the nodes that are replaced."""
    feasible: Mask
    fixed: Scores
    """Weighted sum of the scores that are final per node."""
    steady: Scores | None
    """The part of it that does not change with the pods on a node; None where it is 0 everywhere."""
    raw: dict[str, Scores]
    """Scores that are normalised over the feasible nodes, by plugin."""
    scored: set[str] = field(default_factory=set)
    """Those whose raw scores have not always been 0 everywhere: the others cannot change the choice."""
    is_new: bool = True
    """No pod but the one that it was made for has asked: nothing is known to be shared."""
    _ranking: Ranking | None = None
    _narrowed: Ranking | None = None
    _narrowed_to: Mask | None = None

    def ranking(self, nodes: ClusterNodeTable, ties: Ties) -> Ranking:
        """The rows ranked by `fixed`."""
        known = self._ranking
        if known is None or not known.is_valid(nodes):
            known = self._ranking = Ranking(nodes, self.feasible, self.fixed, ties)
        return known

    def narrowed_ranking(self, nodes: ClusterNodeTable, feasible: Mask, ties: Ties) -> Ranking | None:
        """Only these rows ranked by `fixed`; None if the last pod had others.

        What narrows the rows is asked for every pod. Often its answers change now and then only, but where each pod
        changes them a ranking would not be worth its while.
        """
        before, self._narrowed_to = self._narrowed_to, feasible
        if before is None or (before != feasible).any():
            self._narrowed = None
            return None
        known = self._narrowed
        if known is None or not known.is_valid(nodes):
            known = self._narrowed = Ranking(nodes, feasible, self.fixed, ties)
        return known

    def set_row(self, row: int, is_feasible: bool, total: int) -> None:
        self.fixed[row] = total
        if is_feasible != self.feasible.item(row):
            self.feasible[row] = is_feasible
            self._ranking = None
        if self._ranking is not None:
            self._ranking.set_total(row, total)
        if self._narrowed is not None:
            self._narrowed.set_total(row, total)

    def set_rows(self, rows: Rows, feasible: Mask, totals: Scores) -> None:
        self.fixed[rows] = totals
        if (feasible != self.feasible[rows]).any():
            self.feasible[rows] = feasible
            self._ranking = None
        if self._ranking is not None:
            self._ranking.set_totals(rows, totals)
        if self._narrowed is not None:
            self._narrowed.set_totals(rows, totals)

    def set_steady(self, row: int, total: int) -> None:
        if self.steady is not None:
            self.steady[row] = total
        elif total:
            self.steady = np.zeros_like(self.fixed)
            self.steady[row] = total

    def set_steadies(self, rows: Rows, totals: Scores) -> None:
        if self.steady is None and totals.any():
            self.steady = np.zeros_like(self.fixed)
        if self.steady is not None:
            self.steady[rows] = totals

    def set_raw(self, name: str, row: int, score: int) -> None:
        if score or name in self.scored:
            self._raw_column(name)[row] = score
            self.scored.add(name)

    def set_raws(self, name: str, rows: Rows, scores: Scores) -> None:
        self._raw_column(name)[rows] = scores
        if scores.any():
            self.scored.add(name)

    def _raw_column(self, name: str) -> Scores:
        column = self.raw.get(name)
        if column is None:
            column = self.raw[name] = np.zeros_like(self.fixed)
        return column


class ColumnCache:
    """Shared columns of one profile, by signature."""

    def __init__(self, profile: Profile, nodes: ClusterNodeTable, questions: NodeQuestions) -> None:
        self._profile = profile
        self._nodes = nodes
        self._questions = questions
        self._columns: OrderedDict[Hashable, SharedColumns] = OrderedDict()

    def columns(self, state: CycleState, pod: Pod, plan: Plan) -> SharedColumns:
        """The columns of the pod's class, as of now."""
        columns = self._columns.get(plan.signature)
        nodes = self._nodes
        versions = tuple([plugin.facts_version() for plugin in plan.versioned])
        if columns is not None and columns.structure == nodes.structure and columns.versions == versions:
            self._columns.move_to_end(plan.signature)
            changed = nodes.changed_since(columns.mark)
            if changed is not None and len(changed) * 4 <= len(nodes):
                if changed and len(changed) <= _FEW_ROWS:
                    self._refresh_one_by_one(state, pod, plan, columns, changed)
                elif changed:
                    self._refresh(state, pod, plan, columns, np.array(changed, dtype=np.int64))
                columns.mark, columns.replaced = nodes.mark, nodes.replaced.mark
                columns.is_new = False
                return columns
        columns = self._columns[plan.signature] = self._compute(state, pod, plan, versions)
        if len(self._columns) > _KEPT_SIGNATURES:
            self._columns.popitem(last=False)
        return columns

    def _compute(self, state: CycleState, pod: Pod, plan: Plan, versions: tuple[Hashable, ...]) -> SharedColumns:
        nodes = self._nodes
        rows = np.arange(len(nodes))
        feasible = self._questions.passing(state, pod, plan.shared_filters, nodes, rows)
        fixed, steady, raw = self._sums(state, pod, plan, nodes, rows)
        # Most plugins have nothing to say about most pods, and a column of zeros is as long as any other.
        raw = {name: scores for name, scores in raw.items() if scores.any()}
        marks = nodes.mark, nodes.replaced.mark
        return SharedColumns(nodes.structure, versions, *marks, feasible, fixed, steady, raw, set(raw))

    def _refresh(self, state: CycleState, pod: Pod, plan: Plan, columns: SharedColumns, rows: Rows) -> None:
        some = NodeRows(self._nodes, rows)
        feasible = self._questions.passing(state, pod, plan.shared_filters, some, rows)
        fixed, steady, raw = self._sums(state, pod, plan, some, rows)
        columns.set_rows(rows, feasible, fixed)
        if steady is not None or columns.steady is not None:
            columns.set_steadies(rows, np.zeros_like(fixed) if steady is None else steady)
        for name, scores in raw.items():
            columns.set_raws(name, rows, scores)

    def _refresh_one_by_one(
        self, state: CycleState, pod: Pod, plan: Plan, columns: SharedColumns, rows: list[int]
    ) -> None:
        """The same for a few rows; who knows columns only is asked first, about all of them at once.

        About a node that was feasible, and on which nothing but pods has changed, those are not asked again who see
        nothing but the Node object.
        """
        if state.timer is not None:
            plan = timed_plan(plan, state.timer)
        passing, sums = [True] * len(rows), [0] * len(rows)
        if plan.column_filters or plan.column_scores:
            passing, sums = self._said_in_columns(state, pod, plan, columns, rows)
        views, replaced = self._questions.views(), self._nodes.replaced.changed_since(columns.replaced)
        for row, passes, total in zip(rows, passing, sums, strict=True):
            node = views[row]
            if replaced is not None and row not in replaced and columns.feasible.item(row):
                is_feasible = passes and _fits(state, pod, plan.moving_filters, node)
                steady = 0 if columns.steady is None else columns.steady.item(row)
            else:
                is_feasible = passes and _fits(state, pod, plan.node_filters, node)
                steady = _score(state, pod, plan.steady_scores, columns, row, node)
                columns.set_steady(row, steady)
            moving = _score(state, pod, plan.moving_scores, columns, row, node)
            columns.set_row(row, is_feasible, total + steady + moving)

    def _said_in_columns(
        self, state: CycleState, pod: Pod, plan: Plan, columns: SharedColumns, rows: list[int]
    ) -> tuple[list[bool], list[int]]:
        """What those say who know columns only: where the pod fits, and the weighted sum of final scores."""
        places = np.array(rows, dtype=np.int64)
        some = NodeRows(self._nodes, places)
        passing, sums = [True] * len(rows), [0] * len(rows)
        if plan.column_filters:
            passing = self._questions.passing(state, pod, plan.column_filters, some, places).tolist()
        for name, ask, weight, is_final in plan.column_scores:
            if name in state.skip_score:
                continue
            try:
                scores = column_of(ask(state, pod, some), np.int64, len(rows))
            except RAISED as error:
                raise score_error(name, error) from error
            if is_final:
                sums = [
                    total + checked_one(name, score) * weight
                    for total, score in zip(sums, scores.tolist(), strict=True)
                ]
            else:
                columns.set_raws(name, places, scores)
        return passing, sums

    def _sums(
        self, state: CycleState, pod: Pod, plan: Plan, nodes: table.NodeTable, rows: Rows
    ) -> tuple[Scores, Scores | None, dict[str, Scores]]:
        """The weighted sum of scores that are final per node, the steady part of it, and the others one by one."""
        fixed, steady = np.zeros(len(rows), dtype=np.int64), None
        raw: dict[str, Scores] = {}
        for name, plugin in plan.shared_scores:
            if name in state.skip_score:
                continue
            scores = self._questions.raw_scores(state, pod, plugin, nodes, rows)
            if isinstance(plugin, points.NormalizeScore):
                raw[name] = np.array(scores)  # ours to keep: a plugin may answer a column of the table itself
            else:
                weight = self._profile.weights[name]
                is_steady = plugin.score_sees is Sees.NODE and isinstance(plugin, points.Score)
                if is_steady and not scores.any():
                    continue
                weighted = checked(name, scores) if weight == 1 else checked(name, scores) * weight
                fixed += weighted
                if is_steady:
                    steady = weighted.copy() if steady is None else steady + weighted
        return fixed, steady, raw


def _fits(state: CycleState, pod: Pod, filters: tuple[NodeFilter, ...], node: RowView) -> bool:
    skipped, name = state.skip_filter, ""
    try:
        for name, ask in filters:
            if name not in skipped and ask(state, pod, node) is not None:
                return False
    except RAISED as error:
        raise filter_error(name, error) from error
    return True


def _score(
    state: CycleState, pod: Pod, scores: tuple[NodeScore, ...], columns: SharedColumns, row: int, node: RowView
) -> int:
    """The weighted sum of the scores that are final; the others are noted."""
    total, skipped = 0, state.skip_score
    for name, ask, weight, is_final in scores:
        if name in skipped:
            continue
        try:
            score = ask(state, pod, node)
            if type(score) is not int:
                score = whole(score)
        except RAISED as error:
            raise score_error(name, error) from error
        if is_final:
            total += checked_one(name, score) * weight
        else:
            columns.set_raw(name, row, score)
    return total
