"""Where would evictions help? A walk over the nodes that refused the pod for a reason that evictions may remove.

The walk ends early: enough candidates are enough, provided that one of them violates no disruption budget. What it
learns of a node is remembered for the next pod of the same class, until something changes on that node; and nodes that
no eviction can help are told apart from the others in columns, before any of them is looked at closely.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from pilotage.api.preemption import VictimPolicy
from pilotage.api.state import CycleState
from pilotage.api.table import Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.nominations import Nominations
from pilotage.framework.dry_run import DryRun
from pilotage.framework.plan import class_of
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.first_step import FirstStep
from pilotage.framework.preemption.outcomes import Outcomes
from pilotage.framework.preemption.walk import Walk
from pilotage.framework.profile import Profile
from pilotage.framework.row_changes import RowChanges
from pilotage.model import Pod

_KEPT_CLASSES = 16
_WORTH_COLUMNS = 8
"""From so many unknown rows on, asking about columns is cheaper than about one node after the other."""


@dataclass(slots=True, eq=False)
class _Memory:
    """What earlier pods of a class have found out, and as of when."""

    versions: Hashable
    selection: int
    allowance: int
    changes: RowChanges
    outcomes: Outcomes


class Preemption:
    """Searches for victims with the filters of one profile."""

    def __init__(
        self,
        profile: Profile,
        dry_run: DryRun,
        nodes: NodeTable,
        nominations: Nominations,
        budgets: DisruptionBudgets,
    ) -> None:
        self._profile = profile
        self._dry_run = dry_run
        self._nodes = nodes
        self._nominations = nominations
        self._budgets = budgets
        self._first_step = FirstStep(profile, nodes)
        self._memories: OrderedDict[Hashable, _Memory] = OrderedDict()

    def search(self, state: CycleState, pod: Pod, rows: Rows, wanted: int, policy: VictimPolicy | None = None) -> Walk:
        """Try the rows in this order until `wanted` candidates are found, one of them without a violation."""
        if policy is not None:
            return self._search_by(policy, state, pod, rows, wanted)
        outcomes = self._outcomes(state, pod)
        own = self._nodes.row(self._nominations.node_of(pod.uid))
        if own is not None:
            # To the others of its class the node that is promised to this very pod is taken.
            outcomes = outcomes.copy()
            outcomes.forget([own])
        self._judge_in_columns(state, pod, outcomes, rows)
        walk = Walk(self._dry_run.trial(state, pod), self._dry_run, self._nodes, self._budgets, outcomes)
        walk.go(rows, wanted)
        return walk

    def _search_by(self, policy: VictimPolicy, state: CycleState, pod: Pod, rows: Rows, wanted: int) -> Walk:
        """Nothing is remembered, and no column knows whom the policy would evict: each node is tried."""
        trial, outcomes = self._dry_run.trial(state, pod), Outcomes(len(self._nodes))
        walk = Walk(trial, self._dry_run, self._nodes, self._budgets, outcomes, policy)
        walk.go(rows, wanted)
        return walk

    def _judge_in_columns(self, state: CycleState, pod: Pod, outcomes: Outcomes, rows: Rows) -> None:
        unknown = outcomes.unknown(rows)
        if len(unknown) < _WORTH_COLUMNS:
            return
        promised = self._nodes.rows_of(frozenset(self._nominations.nodes()))
        self._first_step.judge(state, pod, unknown, promised[unknown], outcomes)

    def _outcomes(self, state: CycleState, pod: Pod) -> Outcomes:
        shared = class_of(self._profile, state, pod)
        if shared is None:
            return Outcomes(len(self._nodes))
        key = (shared.signature, pod.priority)
        memory = self._memories.get(key)
        if memory is None or memory.versions != shared.versions or not self._is_brought_up_to_date(memory):
            memory = self._memories[key] = _Memory(
                shared.versions,
                self._budgets.selection,
                self._budgets.allowance,
                RowChanges(self._nodes, self._nominations),
                Outcomes(len(self._nodes)),
            )
            if len(self._memories) > _KEPT_CLASSES:
                self._memories.popitem(last=False)
        self._memories.move_to_end(key)
        return memory.outcomes

    def _is_brought_up_to_date(self, memory: _Memory) -> bool:
        """Forget what does not hold any more; False if that is everything."""
        changed = memory.changes.since_last()
        if changed is None or memory.selection != self._budgets.selection:
            return False
        memory.outcomes.forget(changed)
        if memory.allowance != self._budgets.allowance:
            memory.allowance = self._budgets.allowance
            memory.outcomes.forget(list(memory.outcomes.budgeted))
        return True
