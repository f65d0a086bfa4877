"""Asking one Filter or Score plugin about many nodes.

A plugin is written in columns or per node; the caller need not know. Everything that a plugin raises, and every
answer of the wrong shape, becomes a `PluginError` that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pilotage.api import points, table
from pilotage.api.plugin import RAISED, Plugin
from pilotage.api.results import Pending, Reason, Reject, Rejection, Skip
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows, Scores
from pilotage.api.views import NodeView
from pilotage.cluster.node_rows import NodeRows, ViewRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import RowView
from pilotage.framework.diagnosis import SILENT
from pilotage.framework.dry_run import filter_error
from pilotage.framework.errors import PluginError, error_text, shown
from pilotage.framework.profile import Named, Profile, name_of
from pilotage.model import Pod

MAX_SCORE: Final = 100
_KINDS: Final[dict[type[np.generic], str]] = {np.bool_: "b", np.int64: "iu"}
_NAMES: Final[dict[type[np.generic], str]] = {np.bool_: "True or False", np.int64: "a whole number"}


def column_of(values: Any, dtype: type[np.generic], size: int) -> NDArray[Any]:
    """What a plugin returned, as a column of the nodes that it was asked about; only whole numbers are scores."""
    column = np.asarray(values)
    if column.dtype.kind not in _KINDS[dtype] and column.size:
        raise TypeError(f"expected {_NAMES[dtype]} for each node, got an array of {column.dtype}: {shown(values)}")
    column = column.astype(dtype, copy=False)
    if column.shape != (size,):
        raise ValueError(f"expected one entry for each of {size} nodes, got an array of shape {column.shape}")
    return column


def whole(score: object) -> int:
    """A score of one node: a whole number, of Python or NumPy."""
    if type(score) is int:
        return score
    if isinstance(score, np.integer):
        return int(score)
    raise TypeError(f"expected a whole number as score, got {shown(score)}")


def reason_of(reason: object) -> Reason:
    """What a filter gives as the reason for a mask."""
    if isinstance(reason, Reason):
        return reason
    raise TypeError(f"expected a Reason beside each mask, got {shown(reason)}")


def rejection_of(answer: object) -> Rejection:
    """What a filter said of a node, if it was not None."""
    if isinstance(answer, Reject | Pending):
        return answer
    raise TypeError(f"expected None, Reject or Pending, got {shown(answer)}")


def score_error(name: str, error: BaseException) -> PluginError:
    return PluginError(name, "Score", f'running Score plugins: plugin "{name}" failed with: {error_text(error)}')


def checked(name: str, scores: Scores) -> Scores:
    """Scores in 0..100, or an error that names the plugin and the first bad value."""
    # Read as unsigned, what is negative is huge: one look finds both.
    if len(scores) and scores.view(np.uint64).max() > MAX_SCORE:
        checked_one(name, int(scores[np.argmax((scores < 0) | (scores > MAX_SCORE))]))
    return scores


def checked_one(name: str, score: int) -> int:
    if 0 <= score <= MAX_SCORE:
        return score
    text = (
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {score}, '
        f"it should in the range of [0, {MAX_SCORE}] after normalizing"
    )
    raise PluginError(name, "Score", text)


class NodeQuestions:
    """Asks the plugins of one profile."""

    def __init__(self, profile: Profile, nodes: ClusterNodeTable) -> None:
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
        timer = state.timer
        try:
            if isinstance(plugin, points.VectorFilter):
                ask = plugin.filter_all
                if timer is not None:
                    ask = timer.timed(name_of(plugin), "filter_all", ask)
                for mask, reason in ask(state, pod, nodes):
                    yield column_of(mask, np.bool_, len(rows)), reason_of(reason), False
                return
            assert isinstance(plugin, points.Filter)
            ask_one = plugin.filter if timer is None else timer.timed(name_of(plugin), "filter", plugin.filter)
            places = np.flatnonzero(candidates)
            for place, view in zip(places.tolist(), self._views_of(rows[places]), strict=True):
                state.budget.spend()
                answer: object = ask_one(state, pod, view)
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
        timer = state.timer
        for name, plugin in plugins:
            pre_score = plugin.pre_score if timer is None else timer.timed(name, "pre_score", plugin.pre_score)
            try:
                answer = pre_score(state, pod, nodes)
            except RAISED as error:
                raise PluginError(name, "PreScore", f'running PreScore plugin "{name}": {error_text(error)}') from error
            if answer is None:
                continue
            if not isinstance(answer, Skip):
                raise PluginError(name, "PreScore", f'running PreScore plugin "{name}": unexpected {shown(answer)}')
            state.skip_score.add(name)

    def raw_scores(self, state: CycleState, pod: Pod, plugin: Plugin, nodes: table.NodeTable, rows: Rows) -> Scores:
        """What a plugin says of these rows, before it is normalised."""
        timer = state.timer
        try:
            if isinstance(plugin, points.VectorScore):
                ask = plugin.score_all
                if timer is not None:
                    ask = timer.timed(name_of(plugin), "score_all", ask)
                return column_of(ask(state, pod, nodes), np.int64, len(rows))
            assert isinstance(plugin, points.Score)
            score, spend = plugin.score, state.budget.spend
            if timer is not None:
                score = timer.timed(name_of(plugin), "score", score)
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
            normalize, timer = plugin.normalize, state.timer
            if timer is not None:
                normalize = timer.timed(name, "normalize", normalize)
            try:
                raw = column_of(normalize(state, pod, raw), np.int64, len(raw))
            except RAISED as error:
                text = f'running Normalize on Score plugins: plugin "{name}" failed with: {error_text(error)}'
                raise PluginError(name, "NormalizeScore", text) from error
        return checked(name, raw)
