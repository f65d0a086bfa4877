"""Asking one Filter or Score plugin about many nodes.

A plugin is written in columns or per node; whoever asks here need not know. Everything that a plugin raises, and every
answer of the wrong shape, becomes a `PluginError` that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from pilotage.api import points, table
from pilotage.api.plugin import RAISED, Plugin
from pilotage.api.results import Pending, Reason, Skip
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows, Scores
from pilotage.api.views import NodeView
from pilotage.cluster.node_rows import NodeRows, ViewRows
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.node_view import RowView
from pilotage.framework.diagnosis import SILENT
from pilotage.framework.dry_run import filter_error
from pilotage.framework.errors import PluginError, error_text, shown
from pilotage.framework.plan import Named
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.score_answers import checked, column_of, reason_of, rejection_of, score_error, whole
from pilotage.model import Pod


class NodeQuestions:
    """Asks the plugins of one profile."""

    def __init__(self, profile: Profile, nodes: NodeTable) -> None:
        self._profile = profile
        self._nodes = nodes
        self._known_views: list[RowView] = []

    def table_of(self, rows: Rows) -> table.NodeTable:
        """A table of these rows, which are distinct."""
        return self._nodes if len(rows) == len(self._nodes) else NodeRows(self._nodes, rows)

    def views(self) -> list[RowView]:
        """The nodes by row; a view looks at a row, so that the same views serve for every pod."""
        views = self._known_views
        while len(views) < len(self._nodes):
            views.append(RowView(self._nodes, len(views)))
        return views

    def _views_of(self, rows: Rows) -> Iterator[RowView]:
        views = self.views()
        if len(rows) == len(self._nodes):
            return islice(views, len(rows))
        return map(views.__getitem__, rows.tolist())

    # --- Filter ------------------------------------------------------------------------------------------------

    def passing(self, state: CycleState, pod: Pod, plugins: Named, nodes: table.NodeTable, rows: Rows) -> Mask:
        """Which of these rows none of the plugins rejects."""
        passing = np.ones(len(rows), dtype=np.bool_)
        for name, plugin in plugins:
            if name in state.skip_filter:
                continue
            for rejected, _, _ in self.rejections(state, pod, plugin, nodes, rows, passing):
                np.greater(passing, rejected, out=passing)  # passing and not rejected, in one step
        return passing

    def rejections(
        self, state: CycleState, pod: Pod, plugin: Plugin, nodes: table.NodeTable, rows: Rows, candidates: Mask
    ) -> Iterator[tuple[Mask, Reason, bool]]:
        """(mask, reason, is_pending) for what one plugin rejects; per-node filters are asked for candidates only."""
        try:
            if isinstance(plugin, points.VectorFilter):
                for mask, reason in plugin.filter_all(state, pod, nodes):
                    yield column_of(mask, np.bool_, len(rows)), reason_of(reason), False
                return
            assert isinstance(plugin, points.Filter)
            places = np.flatnonzero(candidates)
            for place, view in zip(places.tolist(), self._views_of(rows[places]), strict=True):
                state.budget.spend()
                answer: object = plugin.filter(state, pod, view)
                if answer is None:
                    continue
                rejection = rejection_of(answer)
                mask = np.zeros(len(rows), dtype=np.bool_)
                mask[place] = True
                for reason in rejection.reasons or (SILENT,):
                    yield mask, reason, isinstance(rejection, Pending)
        except RAISED as error:
            raise filter_error(name_of(plugin), error) from error

    # --- Score -------------------------------------------------------------------------------------------------

    def pre_score(
        self, state: CycleState, pod: Pod, plugins: Sequence[tuple[str, Any]], nodes: table.NodeTable
    ) -> None:
        """Let score plugins prepare; those that have nothing to say for this pod are skipped."""
        for name, plugin in plugins:
            try:
                answer = plugin.pre_score(state, pod, nodes)
            except RAISED as error:
                raise PluginError(name, "PreScore", f'running PreScore plugin "{name}": {error_text(error)}') from error
            if answer is None:
                continue
            if not isinstance(answer, Skip):
                raise PluginError(name, "PreScore", f'running PreScore plugin "{name}": unexpected {shown(answer)}')
            state.skip_score.add(name)

    def raw_scores(self, state: CycleState, pod: Pod, plugin: Plugin, nodes: table.NodeTable, rows: Rows) -> Scores:
        """What a plugin says of these rows, before it is normalised."""
        try:
            if isinstance(plugin, points.VectorScore):
                return column_of(plugin.score_all(state, pod, nodes), np.int64, len(rows))
            assert isinstance(plugin, points.Score)
            score, spend = plugin.score, state.budget.spend
            scores = np.empty(len(rows), dtype=np.int64)
            for place, view in enumerate(self._views_of(rows)):
                spend()
                scores[place] = whole(score(state, pod, view))
            return scores
        except RAISED as error:
            raise score_error(name_of(plugin), error) from error

    def raw_scores_on(
        self, state: CycleState, pod: Pod, plugin: Plugin, rows: Rows, views: Sequence[NodeView]
    ) -> Scores:
        """The same of nodes as they would be: `views` of these rows."""
        try:
            if isinstance(plugin, points.Score):
                return np.array([whole(plugin.score(state, pod, view)) for view in views], dtype=np.int64)
            assert isinstance(plugin, points.VectorScore)
            ask = plugin.score_all
            tables = [ViewRows(self._nodes, row, view) for row, view in zip(rows.tolist(), views, strict=True)]
            return np.array([column_of(ask(state, pod, one), np.int64, 1)[0] for one in tables], dtype=np.int64)
        except RAISED as error:
            raise score_error(name_of(plugin), error) from error

    def points(self, state: CycleState, pod: Pod, plugin: Plugin, raw: Scores) -> Scores:
        """Raw scores of the feasible rows, normalised if the plugin does so: 0 to 100, without its weight."""
        name = name_of(plugin)
        if isinstance(plugin, points.NormalizeScore):
            try:
                raw = column_of(plugin.normalize(state, pod, raw), np.int64, len(raw))
            except RAISED as error:
                text = f'running Normalize on Score plugins: plugin "{name}" failed with: {error_text(error)}'
                raise PluginError(name, "NormalizeScore", text) from error
        return checked(name, raw)
