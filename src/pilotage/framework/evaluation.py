"""Filter and score all nodes for a pod, in columns.

The outcome is one column of totals: the weighted sum of the scores where the pod fits, `REFUSED` where it does not.
For plugins that sign the pod the columns are kept per signature (`SharedColumns`): when the next equal pod comes, only
rows that changed since are evaluated again, typically the one node that took the previous pod.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pilotage.api import points, table
from pilotage.api.plugin import Plugin
from pilotage.api.results import Pending, Reason, Skip
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Scores
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.node_view import RowView
from pilotage.cluster.nominations import Nominations
from pilotage.framework.contested import Contested
from pilotage.framework.diagnosis import Diagnosis, Refused, Rejection
from pilotage.framework.dry_run import DryRun, filter_error
from pilotage.framework.errors import PluginError
from pilotage.framework.node_walk import FOUND, NodeWalk
from pilotage.framework.plan import Named, Plan, plan_for
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.score_answers import checked, checked_one, column_of, one_score, score_error
from pilotage.model import Pod

REFUSED = -1
_KEPT_SIGNATURES = 256
_FEW_ROWS = 8
_NONE_JUDGED: Mapping[int, Refused] = MappingProxyType({})
_SILENT = Reason("Refused", "")
"""For a refusal that gives no reason."""

Rows = NDArray[np.int64]


@dataclass(slots=True)
class SharedColumns:
    """What is known of all nodes for one signature."""

    structure: int
    versions: tuple[Hashable, ...]
    mark: int
    feasible: Mask
    fixed: Scores
    """Weighted sum of the scores that are final per node."""
    raw: dict[str, Scores]
    """Scores that are normalised over the feasible nodes, by plugin."""
    totals: Scores
    """`fixed` where feasible, REFUSED elsewhere."""


class Evaluator:
    """Evaluates nodes for the pods of one profile."""

    def __init__(
        self, profile: Profile, nodes: NodeTable, nominations: Nominations, walk: NodeWalk | None = None
    ) -> None:
        self._profile = profile
        self._nodes = nodes
        self._walk = walk if walk is not None and walk.is_for(profile) else None
        self.dry_run = DryRun(profile, nodes, nominations)
        self._contested = Contested(profile, self.dry_run, nodes, nominations)
        self._columns: OrderedDict[Hashable, SharedColumns] = OrderedDict()
        self._known_views: list[RowView] = []

    def totals(self, state: CycleState, pod: Pod, allowed: Mask | None) -> Scores:
        """Total score per row, REFUSED where the pod does not fit or the row is not allowed.

        Totals are for comparing rows: what is the same for all of them may be left out.
        """
        plan = plan_for(self._profile, pod)
        # Plugins that sign look at one node at a time, so which nodes are feasible cannot matter to them.
        self._pre_score(state, pod, plan.shared_pre_scores, self._nodes)
        shared = self._shared_columns(state, pod, plan)
        feasible = self._feasible(state, pod, plan, shared, allowed)
        if self._walk is not None:
            state[FOUND] = found = self._walk.find(self._profile, feasible, allowed)
            feasible = _mask(found, len(self._nodes))
        rows = self._rows_of(feasible)
        if plan.fresh_pre_scores and len(rows) > 1:
            self._pre_score(state, pod, plan.fresh_pre_scores, self._some(rows))
        raws = {name: raw for name, raw in shared.raw.items() if raw.any()}
        fresh = [(name, plugin) for name, plugin in plan.fresh_scores if name not in state.skip_score]
        if feasible is shared.feasible and not raws and not fresh:
            # Raw scores that are all 0 normalise to equal scores, which cannot change the choice.
            return shared.totals
        scores = self._picked(shared.fixed, rows)
        if len(rows) > 1:
            self._add_normalized_shared(state, pod, plan, raws, rows, scores)
            self._add_fresh_scores(state, pod, fresh, rows, scores)
        if len(rows) == len(self._nodes):
            return scores
        totals = np.full(len(self._nodes), REFUSED, dtype=np.int64)
        totals[rows] = scores
        return totals

    def feasible(self, state: CycleState, pod: Pod, allowed: Mask | None) -> Mask:
        """The rows on which the pod fits."""
        plan = plan_for(self._profile, pod)
        self._pre_score(state, pod, plan.shared_pre_scores, self._nodes)
        return self._feasible(state, pod, plan, self._shared_columns(state, pod, plan), allowed)

    def score_breakdown(self, state: CycleState, pod: Pod, rows: Rows) -> dict[str, tuple[Scores, Scores]]:
        """For each score plugin that does not skip: raw and weighted scores of these (feasible) rows."""
        plan, some = plan_for(self._profile, pod), self._some(rows)
        self._pre_score(state, pod, [*plan.shared_pre_scores, *plan.fresh_pre_scores], some)
        breakdown = {}
        for plugin in self._profile.scores:
            name = name_of(plugin)
            if name not in state.skip_score:
                raw = self._raw_scores(state, pod, plugin, some, rows)
                breakdown[name] = (raw, self._normalized(state, pod, plugin, raw))
        return breakdown

    def _feasible(self, state: CycleState, pod: Pod, plan: Plan, shared: SharedColumns, allowed: Mask | None) -> Mask:
        feasible = shared.feasible if allowed is None else shared.feasible & allowed
        fresh = tuple((name, plugin) for name, plugin in plan.fresh_filters if name not in state.skip_filter)
        feasible = self._fresh_feasible(state, pod, fresh, feasible)
        return self._spared(state, pod, feasible)

    def _some(self, rows: Rows) -> table.NodeTable:
        return self._nodes if len(rows) == len(self._nodes) else NodeRows(self._nodes, rows)

    def _rows_of(self, mask: Mask) -> Rows:
        """Where the mask is True; most pods fit nearly everywhere, and then there is nothing to search for."""
        return np.arange(len(mask)) if mask.all() else np.flatnonzero(mask)

    def _picked(self, column: Scores, rows: Rows) -> Scores:
        """A copy of these rows of a shared column."""
        return column.copy() if len(rows) == len(column) else column[rows]

    def _views(self, rows: Rows) -> Iterator[RowView]:
        """The nodes of these rows; a view looks at a row, so that the same views serve for every pod."""
        views = self._known_views
        while len(views) < len(self._nodes):
            views.append(RowView(self._nodes, len(views)))
        if len(rows) == len(self._nodes):
            return islice(views, len(rows))
        return map(views.__getitem__, rows.tolist())

    def _spared(self, state: CycleState, pod: Pod, feasible: Mask) -> Mask:
        """Without the rows where the pod fits only because the nominated pods are not there yet."""
        if not feasible.any():
            return feasible
        verdicts = self._contested.verdicts(state, pod, feasible)
        taken = verdicts.refused(feasible) if verdicts is not None else ()
        if len(taken):
            feasible = feasible.copy()
            feasible[taken] = False
        return feasible

    # --- columns shared by equal pods --------------------------------------------------------------------------

    def _shared_columns(self, state: CycleState, pod: Pod, plan: Plan) -> SharedColumns:
        columns = self._columns.get(plan.signature)
        nodes = self._nodes
        versions = tuple(plugin.facts_version() for plugin in plan.versioned)
        if columns is not None and columns.structure == nodes.structure and columns.versions == versions:
            self._columns.move_to_end(plan.signature)
            changed = nodes.changed_since(columns.mark)
            if changed is not None and len(changed) * 4 <= len(nodes):
                if changed and len(changed) <= _FEW_ROWS:
                    self._refresh_one_by_one(state, pod, plan, columns, changed)
                elif changed:
                    self._refresh(state, pod, plan, columns, np.array(changed, dtype=np.int64))
                columns.mark = nodes.mark
                return columns
        columns = self._compute(state, pod, plan, versions)
        self._columns[plan.signature] = columns
        if len(self._columns) > _KEPT_SIGNATURES:
            self._columns.popitem(last=False)
        return columns

    def _compute(self, state: CycleState, pod: Pod, plan: Plan, versions: tuple[Hashable, ...]) -> SharedColumns:
        nodes = self._nodes
        feasible = self._passing(state, pod, plan.shared_filters, nodes, np.arange(len(nodes)))
        fixed, raw = self._sums(state, pod, plan.shared_scores, nodes, np.arange(len(nodes)))
        totals = np.where(feasible, fixed, REFUSED)
        return SharedColumns(nodes.structure, versions, nodes.mark, feasible, fixed, raw, totals)

    def _refresh(self, state: CycleState, pod: Pod, plan: Plan, columns: SharedColumns, rows: Rows) -> None:
        some = NodeRows(self._nodes, rows)
        feasible = self._passing(state, pod, plan.shared_filters, some, rows)
        fixed, raw = self._sums(state, pod, plan.shared_scores, some, rows)
        columns.feasible[rows] = feasible
        columns.fixed[rows] = fixed
        columns.totals[rows] = np.where(feasible, fixed, REFUSED)
        for name, scores in raw.items():
            columns.raw[name][rows] = scores

    def _refresh_one_by_one(
        self, state: CycleState, pod: Pod, plan: Plan, columns: SharedColumns, rows: list[int]
    ) -> None:
        """The same for a few rows: NumPy's cost per call would exceed that of plain arithmetic."""
        for row in rows:
            node = RowView(self._nodes, row)
            columns.feasible[row] = fits = self._fits(state, pod, plan, node)
            total = 0
            for name, plugin in plan.shared_scores:
                if name in state.skip_score or not isinstance(plugin, points.Score):
                    continue
                score = one_score(name, plugin, state, pod, node)
                if name in columns.raw:
                    columns.raw[name][row] = score
                else:
                    total += checked_one(name, score) * self._profile.weights[name]
            columns.fixed[row] = total
            columns.totals[row] = total if fits else REFUSED
        if plan.column_filters or plan.column_scores:
            self._refresh_the_rest(state, pod, plan, columns, np.array(rows, dtype=np.int64))

    def _refresh_the_rest(self, state: CycleState, pod: Pod, plan: Plan, columns: SharedColumns, rows: Rows) -> None:
        """What those say who know columns only."""
        some = NodeRows(self._nodes, rows)
        if plan.column_filters:
            columns.feasible[rows] &= self._passing(state, pod, plan.column_filters, some, rows)
        fixed, raw = self._sums(state, pod, plan.column_scores, some, rows)
        columns.fixed[rows] += fixed
        columns.totals[rows] = np.where(columns.feasible[rows], columns.fixed[rows], REFUSED)
        for name, scores in raw.items():
            columns.raw[name][rows] = scores

    def _fits(self, state: CycleState, pod: Pod, plan: Plan, node: RowView) -> bool:
        for name, plugin in plan.shared_filters:
            if name in state.skip_filter or not isinstance(plugin, points.Filter):
                continue
            try:
                if plugin.filter(state, pod, node) is not None:
                    return False
            except Exception as error:
                raise filter_error(name, error) from error
        return True

    def _sums(
        self, state: CycleState, pod: Pod, plugins: Named, nodes: table.NodeTable, rows: Rows
    ) -> tuple[Scores, dict[str, Scores]]:
        """The weighted sum of scores that are final per node, and the others one by one."""
        fixed = np.zeros(len(rows), dtype=np.int64)
        raw: dict[str, Scores] = {}
        for name, plugin in plugins:
            if name in state.skip_score:
                continue
            scores = self._raw_scores(state, pod, plugin, nodes, rows)
            if isinstance(plugin, points.NormalizeScore):
                raw[name] = np.array(scores)  # ours to keep: a plugin may answer a column of the table itself
            else:
                fixed += checked(name, scores) * self._profile.weights[name]
        return fixed, raw

    # --- what must be asked for every pod ----------------------------------------------------------------------

    def _fresh_feasible(self, state: CycleState, pod: Pod, filters: Named, feasible: Mask) -> Mask:
        if not filters or not feasible.any():
            return feasible
        rows = self._rows_of(feasible)
        passing = self._passing(state, pod, filters, self._some(rows), rows)
        if passing.all():
            return feasible
        return _mask(rows[passing], len(self._nodes))

    def _add_normalized_shared(
        self, state: CycleState, pod: Pod, plan: Plan, raws: Mapping[str, Scores], rows: Rows, scores: Scores
    ) -> None:
        """Shared scores that are normalised over the feasible nodes."""
        for name, plugin in plan.shared_scores:
            if name in raws:
                scores += self._normalized(state, pod, plugin, self._picked(raws[name], rows))

    def _add_fresh_scores(
        self, state: CycleState, pod: Pod, plugins: Sequence[tuple[str, Plugin]], rows: Rows, scores: Scores
    ) -> None:
        """Scores of the plugins that must be asked for every pod."""
        for _, plugin in plugins:
            raw = self._raw_scores(state, pod, plugin, self._some(rows), rows)
            scores += self._normalized(state, pod, plugin, raw)

    # --- one plugin --------------------------------------------------------------------------------------------

    def _passing(self, state: CycleState, pod: Pod, plugins: Named, nodes: table.NodeTable, rows: Rows) -> Mask:
        passing = np.ones(len(rows), dtype=np.bool_)
        for name, plugin in plugins:
            if name in state.skip_filter:
                continue
            for refused, _, _ in self._refusals(state, pod, plugin, nodes, rows, passing):
                if refused.any():
                    passing &= ~refused
        return passing

    def _refusals(
        self, state: CycleState, pod: Pod, plugin: Plugin, nodes: table.NodeTable, rows: Rows, candidates: Mask
    ) -> Iterator[tuple[Mask, Reason, bool]]:
        """(mask, reason, is_pending) for what one plugin refuses; per-node filters are asked for candidates only."""
        try:
            if isinstance(plugin, points.VectorFilter):
                for mask, reason in plugin.filter_all(state, pod, nodes):
                    yield column_of(mask, np.bool_, len(rows)), reason, False
                return
            assert isinstance(plugin, points.Filter)
            places = np.flatnonzero(candidates)
            for place, view in zip(places.tolist(), self._views(rows[places]), strict=True):
                refusal = plugin.filter(state, pod, view)
                if refusal is None:
                    continue
                mask = np.zeros(len(rows), dtype=np.bool_)
                mask[place] = True
                for reason in refusal.reasons or (_SILENT,):
                    yield mask, reason, isinstance(refusal, Pending)
        except Exception as error:
            raise filter_error(name_of(plugin), error) from error

    def _raw_scores(self, state: CycleState, pod: Pod, plugin: Plugin, nodes: table.NodeTable, rows: Rows) -> Scores:
        try:
            if isinstance(plugin, points.VectorScore):
                return column_of(plugin.score_all(state, pod, nodes), np.int64, len(rows))
            assert isinstance(plugin, points.Score)
            score = plugin.score
            return np.array([score(state, pod, view) for view in self._views(rows)], dtype=np.int64)
        except Exception as error:
            raise score_error(name_of(plugin), error) from error

    def _normalized(self, state: CycleState, pod: Pod, plugin: Plugin, raw: Scores) -> Scores:
        name = name_of(plugin)
        if isinstance(plugin, points.NormalizeScore):
            try:
                raw = column_of(plugin.normalize(state, pod, raw), np.int64, len(raw))
            except Exception as error:
                text = f'running Normalize on Score plugins: plugin "{name}" failed with: {error}'
                raise PluginError(name, "NormalizeScore", text) from error
        weight = self._profile.weights[name]
        return checked(name, raw) if weight == 1 else checked(name, raw) * weight

    # --- why not -----------------------------------------------------------------------------------------------

    def diagnose(
        self,
        state: CycleState,
        pod: Pod,
        diagnosis: Diagnosis,
        allowed: Mask | None,
        judged: Mapping[int, Refused] = _NONE_JUDGED,
    ) -> None:
        """Write into `diagnosis` who refused which node: the first plugin that did, with all its reasons.

        Rows in `judged` have their verdict already.
        """
        nodes = self._nodes
        open_rows = np.ones(len(nodes), dtype=np.bool_) if allowed is None else allowed.copy()
        all_rows = np.arange(len(nodes))
        for row, refused in judged.items():
            open_rows[row] = False
            self._note(diagnosis, refused, all_rows == row)
        verdicts = self._contested.verdicts(state, pod, open_rows)
        if verdicts is not None:
            for refused, mask in verdicts.groups(open_rows):
                self._note(diagnosis, refused, mask)
            open_rows[verdicts.refused(open_rows)] = False
        for plugin in self._profile.filters:
            name = name_of(plugin)
            if name in state.skip_filter:
                continue
            # Nodes that others have refused are not looked at: what fails there must not stop the attempt.
            rows = np.flatnonzero(open_rows)
            if not len(rows):
                break
            refused_here = np.zeros(len(nodes), dtype=np.bool_)
            candidates = np.ones(len(rows), dtype=np.bool_)
            for found, reason, is_pending in self._refusals(state, pod, plugin, self._some(rows), rows, candidates):
                if not found.any():
                    continue
                mask = np.zeros(len(nodes), dtype=np.bool_)
                mask[rows[found]] = True
                refused_here |= mask
                diagnosis.rejections.append(Rejection(name, reason, mask, is_pending))
                diagnosis.rejectors.add(name)
                if is_pending:
                    diagnosis.pending.add(name)
            open_rows &= ~refused_here

    @staticmethod
    def _note(diagnosis: Diagnosis, refused: Refused, rows: Mask) -> None:
        """A verdict that was not found by asking the plugins in columns."""
        is_pending = isinstance(refused.refusal, Pending)
        diagnosis.rejectors.add(refused.plugin)
        if is_pending:
            diagnosis.pending.add(refused.plugin)
        for reason in refused.refusal.reasons or (_SILENT,):
            diagnosis.rejections.append(Rejection(refused.plugin, reason, rows, is_pending))

    def _pre_score(
        self, state: CycleState, pod: Pod, plugins: Sequence[tuple[str, Any]], nodes: table.NodeTable
    ) -> None:
        """Let score plugins prepare; those that have nothing to say for this pod are skipped."""
        for name, plugin in plugins:
            try:
                answer = plugin.pre_score(state, pod, nodes)
            except Exception as error:
                raise PluginError(name, "PreScore", f'running PreScore plugin "{name}": {error}') from error
            if isinstance(answer, Skip):
                state.skip_score.add(name)
            elif answer is not None:
                raise PluginError(name, "PreScore", f'running PreScore plugin "{name}": unexpected {answer!r}')


def _mask(rows: Rows, size: int) -> Mask:
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return mask
