"""The search for candidates: a walk over the nodes that rejected the pod for a reason that evictions may remove.

The walk ends early: enough candidates are enough, provided that one of them violates no disruption budget. What it
learns of a node is remembered for the next pod of the same class, until something changes on that node; and nodes that
no eviction can help are separated from the others in columns, before any of them is looked at closely.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from pilotage.api.preemption import VictimPolicy
from pilotage.api.state import CycleState
from pilotage.api.table import Rows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.state import Nominations
from pilotage.framework.class_memory import ClassMemory
from pilotage.framework.dry_run import DryRun
from pilotage.framework.preemption.first_step import FirstStep
from pilotage.framework.preemption.outcomes import Outcomes
from pilotage.framework.preemption.review import REVIEW, CandidatesFound, ReviewedSearch
from pilotage.framework.preemption.units import VictimUnits
from pilotage.framework.preemption.walk import Walk
from pilotage.framework.profile import Profile
from pilotage.model import Pod

_KEPT_CLASSES = 16
_WORTH_COLUMNS = 8
"""From so many unknown rows on, asking about columns is cheaper than about one node after the other."""


class _Search(Struct, eq=False):
    """What earlier pods of a class have found out, and for which disruption budgets."""

    selection: int
    allowance: int
    groups: int
    outcomes: Outcomes


class Preemption:
    """Searches for victims with the filters of one profile."""

    def __init__(
        self,
        profile: Profile,
        dry_run: DryRun,
        nodes: ClusterNodeTable,
        nominations: Nominations,
        units: VictimUnits,
    ) -> None:
        self._dry_run = dry_run
        self._nodes = nodes
        self._nominations = nominations
        self._budgets = units.budgets
        self._units = units
        self._first_step = FirstStep(profile, nodes)
        self._searches = ClassMemory(profile, nodes, nominations, self._new, self._update, _KEPT_CLASSES)

    def search(
        self, state: CycleState, pod: Pod, rows: Rows, wanted: int, policy: VictimPolicy | None = None
    ) -> Walk | ReviewedSearch:
        """Try the rows in this order until `wanted` candidates are found, one of them without a violation."""
        if policy is not None:
            return self._search_by(policy, state, pod, rows, wanted)
        review = state.get(REVIEW)
        if review is not None and review.answer is not None:
            return ReviewedSearch(review.answer)
        outcomes = (self._searches.get(state, pod) or self._new(pod)).outcomes
        own = self._nodes.row(self._nominations.node_of(pod.uid))
        if own is not None:
            # To the others of its class the nominated node of this very pod is taken.
            outcomes = outcomes.copy()
            outcomes.forget([own])
        self._judge_in_columns(state, pod, outcomes, rows)
        filters = self._dry_run.filters_of(state, pod)
        walk = Walk(filters, self._dry_run, self._nodes, self._units, outcomes)
        walk.go(rows, wanted)
        if review is not None and walk.candidates:
            raise CandidatesFound(walk.candidates)
        return walk

    def _search_by(self, policy: VictimPolicy, state: CycleState, pod: Pod, rows: Rows, wanted: int) -> Walk:
        """Nothing is remembered, and no column knows whom the policy would evict: each node is tried."""
        filters, outcomes = self._dry_run.filters_of(state, pod), Outcomes(len(self._nodes))
        walk = Walk(filters, self._dry_run, self._nodes, self._units, outcomes, policy)
        walk.go(rows, wanted)
        return walk

    def _judge_in_columns(self, state: CycleState, pod: Pod, outcomes: Outcomes, rows: Rows) -> None:
        unknown = outcomes.unknown(rows)
        if len(unknown) < _WORTH_COLUMNS:
            return
        nominated = self._nodes.rows_of(frozenset(self._nominations.nodes()))
        self._first_step.judge(state, pod, unknown, nominated[unknown], outcomes)

    def _new(self, _: Pod) -> _Search:
        budgets = self._budgets
        return _Search(budgets.selection, budgets.allowance, self._units.version, Outcomes(len(self._nodes)))

    def _update(self, known: _Search, _: Pod, changed: Sequence[int]) -> bool:
        if (known.selection, known.groups) != (self._budgets.selection, self._units.version):
            return False
        known.outcomes.forget(list(known.outcomes.reaching_elsewhere))
        known.outcomes.forget(changed)
        if known.allowance != self._budgets.allowance:
            known.allowance = self._budgets.allowance
            known.outcomes.forget(list(known.outcomes.budgeted))
        return True
