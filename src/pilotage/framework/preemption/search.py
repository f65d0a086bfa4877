"""Where would evictions help? A walk over the nodes that refused the pod for a reason that evictions may remove.

The walk ends early: enough candidates are enough, provided that one of them violates no disruption budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pilotage.api.preemption import Candidate
from pilotage.api.results import Reason, Refusal, Reject
from pilotage.api.state import CycleState
from pilotage.api.table import Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.framework.diagnosis import ABSENT_PLUGIN, Refused, unavailable_text
from pilotage.framework.dry_run import DryRun
from pilotage.framework.errors import PluginError
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.victims import NoVictimNeeded, try_node
from pilotage.model import Pod

_NOT_HELPFUL = "Preemption is not helpful for scheduling"


class Search:
    """What a walk has found; implements `pilotage.api.preemption.VictimSearch`."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._refused: dict[int, Refused] = {}
        self.candidates: list[Candidate] = []
        self.errors: list[Exception] = []

    def note(self, row: int, outcome: Candidate | Refused) -> None:
        if isinstance(outcome, Candidate):
            self.candidates.append(outcome)
        else:
            self._refused[row] = outcome

    def note_error(self, row: int, error: Exception) -> None:
        self.errors.append(error)
        self._refused[row] = Refused(ABSENT_PLUGIN, Reject(Reason("PluginError", str(error))))

    def refusals(self) -> Mapping[str, tuple[str, Refusal]]:
        names = self._nodes.names
        return {names[row]: (refused.plugin, refused.refusal) for row, refused in self._refused.items()}

    def message(self) -> str:
        counts = Counter(reason.message for refused in self._refused.values() for reason in refused.refusal.reasons)
        untried = len(self._nodes) - len(self._refused) - len(self.candidates)
        if untried:
            counts[_NOT_HELPFUL] += untried
        return unavailable_text(len(self._nodes), counts)


class Preemption:
    """Searches for victims with the filters of one profile."""

    def __init__(self, dry_run: DryRun, nodes: NodeTable, budgets: DisruptionBudgets) -> None:
        self._dry_run = dry_run
        self._nodes = nodes
        self._budgets = budgets

    def search(self, state: CycleState, pod: Pod, rows: Rows, wanted: int) -> Search:
        """Try the rows in this order until `wanted` candidates are found, one of them without a violation."""
        search = Search(self._nodes)
        trial = self._dry_run.trial(state, pod)
        is_one_harmless = False
        for row in rows.tolist():
            rivals = self._dry_run.rivals_on(pod, self._nodes.names[row])
            try:
                outcome = try_node(trial, row, rivals, self._budgets)
            except (PluginError, NoVictimNeeded) as error:
                search.note_error(row, error)
                continue
            search.note(row, outcome)
            is_one_harmless |= isinstance(outcome, Candidate) and not outcome.violations
            if is_one_harmless and len(search.candidates) >= wanted:
                break
        return search
