"""Filter and score all nodes for a pod, in columns, and find the best.

Answers of plugins that sign the pod come from columns that equal pods share (`shared_columns`), with their sum ranked
already. What the others say is asked for every pod and added; the choice is then one look for the maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows, Scores
from pilotage.api.views import NodeView
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.state import Nominations
from pilotage.framework.diagnose import WhyNot
from pilotage.framework.diagnosis import Diagnosis, Rejected
from pilotage.framework.dry_run import DryRun
from pilotage.framework.node_questions import MAX_SCORE, NodeQuestions
from pilotage.framework.node_sampling import FOUND, NodeSampling
from pilotage.framework.nominated_pods_filter import NominatedPodsFilter
from pilotage.framework.profile import Plan, Profile, name_of, plan_for
from pilotage.framework.rejection_memory import RejectionMemory
from pilotage.framework.shared_columns import (
    HEAP,
    INFEASIBLE,
    Best,
    ColumnCache,
    Ranking,
    SharedColumns,
    can_be_ranked,
    choose,
)
from pilotage.model import Pod

_FEWEST_TO_CHOOSE_FROM: Final = 2
_NONE_JUDGED: Mapping[int, Rejected] = MappingProxyType({})


class Evaluator:
    """Evaluates nodes for the pods of one profile."""

    def __init__(
        self, profile: Profile, nodes: ClusterNodeTable, nominations: Nominations, walk: NodeSampling | None = None
    ) -> None:
        self._profile = profile
        self._ties = HEAP if walk is None else walk.ties
        self._nodes = nodes
        self._nominations = nominations
        self._walk = walk if walk is not None and walk.is_for(profile) else None
        self._most_points = MAX_SCORE * sum(profile.weights.values())
        self.base_total = 0 if profile.scores else 1
        """The total of a feasible node before any points: without score plugins kube-scheduler gives each node 1."""
        self._questions = NodeQuestions(profile, nodes)
        self._cache = ColumnCache(profile, nodes, self._questions)
        self.dry_run = DryRun(profile, nodes, nominations)
        self._contested = NominatedPodsFilter(profile, self.dry_run, nodes, nominations)
        memory = RejectionMemory(profile, nodes, nominations, self._questions, self.dry_run, self._contested)
        self._why_not = WhyNot(profile, nodes, self._questions, self._contested, memory)

    def best(self, state: CycleState, pod: Pod, allowed: Mask | None) -> Best | None:
        """The row to take among those allowed, or None if the pod fits on none of them."""
        plan = plan_for(self._profile, pod)
        shared = self._shared(state, pod, plan)
        feasible = self._feasible(state, pod, plan, shared, allowed)
        ranking = self._ranking(shared, feasible)
        if ranking is not None:
            return self._best_ranked(state, pod, plan, shared, ranking)
        if self._walk is None and not feasible.any():
            return None
        totals = self._totals(state, pod, plan, shared, feasible, allowed)
        row = choose(totals, self._nodes, state.get(FOUND), self._ties)
        return None if row is None else Best(row, int(totals[row]))

    def totals(self, state: CycleState, pod: Pod, allowed: Mask | None) -> Scores:
        """Total score per row, INFEASIBLE where the pod does not fit or the row is not allowed.

        Totals are for comparing rows: what is the same for all of them may be left out.
        """
        plan = plan_for(self._profile, pod)
        shared = self._shared(state, pod, plan)
        feasible = self._feasible(state, pod, plan, shared, allowed)
        return self._totals(state, pod, plan, shared, feasible, allowed)

    def feasible(self, state: CycleState, pod: Pod, allowed: Mask | None) -> Mask:
        """The rows on which the pod fits."""
        plan = plan_for(self._profile, pod)
        return self._feasible(state, pod, plan, self._shared(state, pod, plan), allowed)

    def found(self, state: CycleState, pod: Pod, allowed: Mask | None) -> Rows:
        """The rows on which the pod fits, as many as the profile looks at, in the order in which they are found."""
        feasible = self.feasible(state, pod, allowed)
        if self._walk is not None:
            return self._walk.find(self._profile, feasible, allowed)
        order = self._nodes.order
        return order[feasible[order]]

    def totals_among(self, state: CycleState, pod: Pod, rows: Rows) -> Scores:
        """Total scores of these rows, in ascending order, as if they were all that is feasible."""
        plan = plan_for(self._profile, pod)
        return self._sums(state, pod, plan, self._shared(state, pod, plan), rows)

    def score_breakdown(self, state: CycleState, pod: Pod, rows: Rows) -> dict[str, tuple[Scores, Scores]]:
        """For each score plugin that does not skip: raw and weighted scores of these (feasible) rows."""
        plan, some = plan_for(self._profile, pod), self._questions.table_of(rows)
        self._questions.pre_score(state, pod, [*plan.shared_pre_scores, *plan.fresh_pre_scores], some)
        breakdown = {}
        for plugin in self._profile.scores:
            name = name_of(plugin)
            if name not in state.skip_score:
                raw = self._questions.raw_scores(state, pod, plugin, some, rows)
                points = self._questions.points(state, pod, plugin, raw)
                breakdown[name] = (raw, points * self._profile.weights[name])
        return breakdown

    def totals_on(self, state: CycleState, pod: Pod, rows: Rows, views: Sequence[NodeView]) -> Scores:
        """Total scores of nodes as they would be: `views` of the rows, taken as if they were all that is feasible."""
        plan = plan_for(self._profile, pod)
        some = NodeRows(self._nodes, rows)
        self._questions.pre_score(state, pod, [*plan.shared_pre_scores, *plan.fresh_pre_scores], some)
        totals = np.zeros(len(rows), dtype=np.int64)
        for plugin in self._profile.scores:
            name = name_of(plugin)
            if name not in state.skip_score:
                raw = self._questions.raw_scores_on(state, pod, plugin, rows, views)
                totals += self._questions.points(state, pod, plugin, raw) * self._profile.weights[name]
        return totals

    def asks_around(self, state: CycleState, pod: Pod) -> bool:
        """Whether a score looks at more than the pod's class and one node. To be asked after PreFilter."""
        plan = plan_for(self._profile, pod)
        self._questions.pre_score(state, pod, plan.fresh_pre_scores, self._nodes)
        return any(name not in state.skip_score for name, _ in plan.fresh_scores)

    def diagnose(
        self,
        state: CycleState,
        pod: Pod,
        diagnosis: Diagnosis,
        allowed: Mask | None,
        judged: Mapping[int, Rejected] = _NONE_JUDGED,
    ) -> None:
        """Write into `diagnosis` who rejected which node; rows in `judged` have their verdict already."""
        self._why_not.diagnose(state, pod, diagnosis, allowed, judged)

    # --- where the pod fits ------------------------------------------------------------------------------------

    def _shared(self, state: CycleState, pod: Pod, plan: Plan) -> SharedColumns:
        # Plugins that sign look at one node at a time, so which nodes are feasible cannot matter to them.
        if state.timer is not None:
            self._questions.pre_score(state, pod, plan.shared_pre_scores, self._nodes)
        else:
            state.skip_score |= plan.skip_score
            if plan.asked_pre_scores:
                self._questions.pre_score(state, pod, plan.asked_pre_scores, self._nodes)
        return self._cache.columns(state, pod, plan)

    def _feasible(self, state: CycleState, pod: Pod, plan: Plan, shared: SharedColumns, allowed: Mask | None) -> Mask:
        """The very mask of `shared` if nothing takes away from it."""
        feasible = shared.feasible if allowed is None else shared.feasible & allowed
        if plan.fresh_filters:
            feasible = self._passing_fresh(state, pod, plan, feasible)
        if len(self._nominations):
            feasible = self._spared(state, pod, feasible)
        return feasible

    def _passing_fresh(self, state: CycleState, pod: Pod, plan: Plan, feasible: Mask) -> Mask:
        """Without the rows that are rejected by filters that must be asked for every pod."""
        fresh = tuple((name, plugin) for name, plugin in plan.fresh_filters if name not in state.skip_filter)
        if not fresh:
            return feasible
        left = feasible
        for name_and_plugin in fresh:
            # Of a row that was rejected nothing more is asked: a filter may note what it sees, or fail.
            rows = _rows_of(left)
            if not len(rows):
                break
            passing = self._questions.passing(state, pod, (name_and_plugin,), self._questions.table_of(rows), rows)
            if passing.all():
                continue
            if len(rows) == len(left):
                left = passing
                continue
            if left is feasible:
                left = feasible.copy()
            left[rows[~passing]] = False
        return left

    def _spared(self, state: CycleState, pod: Pod, feasible: Mask) -> Mask:
        """Without the rows where the pod fits only because the nominated pods are not there yet."""
        if not feasible.any():
            return feasible
        verdicts = self._contested.verdicts(state, pod, feasible)
        taken = verdicts.rejected(feasible) if verdicts is not None else ()
        if len(taken):
            feasible = feasible.copy()
            feasible[taken] = False
        return feasible

    # --- which of them is best ---------------------------------------------------------------------------------

    def _ranking(self, shared: SharedColumns, feasible: Mask) -> Ranking | None:
        """The ranking of the feasible rows, if there is one: it is worth its while when equal pods come."""
        if shared.is_new and self._ties.lots is None:
            return None
        if self._walk is not None or not can_be_ranked(len(self._nodes), self._most_points):
            return None
        if feasible is shared.feasible:
            return shared.ranking(self._nodes, self._ties)
        return shared.narrowed_ranking(self._nodes, feasible, self._ties)

    def _best_ranked(
        self, state: CycleState, pod: Pod, plan: Plan, shared: SharedColumns, ranking: Ranking
    ) -> Best | None:
        """The choice among the rows of a ranking."""
        if len(ranking.rows) < _FEWEST_TO_CHOOSE_FROM or not (shared.scored or plan.asks_fresh_scores):
            return ranking.best()
        keys: Scores | None = None
        for points, weight in self._points(state, pod, plan, shared, ranking.rows):
            more = points * (weight << ranking.bits)
            # What is shared is not written to; what was made here is.
            keys = np.add(more, ranking.keys_of_rows() if keys is None else keys, out=more)
        return ranking.best() if keys is None else ranking.best_of(keys)

    def _totals(
        self, state: CycleState, pod: Pod, plan: Plan, shared: SharedColumns, feasible: Mask, allowed: Mask | None
    ) -> Scores:
        if self._walk is not None:
            state[FOUND] = found = self._walk.find(self._profile, feasible, allowed)
            feasible = _mask(found, len(self._nodes))
        totals = shared.fixed.copy()
        if shared.scored or plan.asks_fresh_scores:
            rows = _rows_of(feasible)
            at = slice(None) if len(rows) == len(totals) else rows
            for points, weight in self._points(state, pod, plan, shared, rows):
                totals[at] += points * weight
        np.putmask(totals, ~feasible, INFEASIBLE)
        return totals

    def _sums(self, state: CycleState, pod: Pod, plan: Plan, shared: SharedColumns, rows: Rows) -> Scores:
        scores = _picked(shared.fixed, rows)
        for points, weight in self._points(state, pod, plan, shared, rows):
            scores += points * weight
        return scores

    def _points(
        self, state: CycleState, pod: Pod, plan: Plan, shared: SharedColumns, rows: Rows
    ) -> Iterator[tuple[Scores, int]]:
        """Points of the feasible rows that are not in the shared sum, with their weight.

        Raw scores that are all 0 normalise to equal points, which cannot change the choice: they are left out. Where
        there is no choice nobody is asked.
        """
        if len(rows) < _FEWEST_TO_CHOOSE_FROM:
            return
        weights = self._profile.weights
        for name, plugin in plan.shared_scores if shared.scored else ():
            if name in shared.scored:
                raw = _picked(shared.raw[name], rows)
                yield self._questions.points(state, pod, plugin, raw), weights[name]
        if not plan.asks_fresh_scores:
            return
        some = self._questions.table_of(rows)
        self._questions.pre_score(state, pod, plan.fresh_pre_scores, some)
        for name, plugin in plan.fresh_scores:
            if name not in state.skip_score:
                raw = self._questions.raw_scores(state, pod, plugin, some, rows)
                points = self._questions.points(state, pod, plugin, raw)
                if points.any():
                    yield points, weights[name]


def _rows_of(mask: Mask) -> Rows:
    """Where the mask is True; most pods fit nearly everywhere, and then there is nothing to search for."""
    return np.arange(len(mask)) if mask.all() else np.flatnonzero(mask)


def _picked(column: Scores, rows: Rows) -> Scores:
    """A copy of these rows of a shared column."""
    return column.copy() if len(rows) == len(column) else column[rows]


def _mask(rows: Rows, size: int) -> Mask:
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return mask
