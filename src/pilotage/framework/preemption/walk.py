"""One pod's walk over the nodes, and what it has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from pilotage.api.preemption import Candidate
from pilotage.api.results import Reason, Refusal, Reject
from pilotage.api.table import Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.framework.diagnosis import ABSENT_PLUGIN, Refused, unavailable_text
from pilotage.framework.dry_run import DryRun, Trial
from pilotage.framework.errors import PluginError
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.outcomes import BROKEN, CANDIDATE, HOPELESS, UNKNOWN, Outcomes
from pilotage.framework.preemption.victims import NoVictimNeeded, try_node
from pilotage.model import Pod

_NOT_HELPFUL = "Preemption is not helpful for scheduling"


class Walk:
    """Implements `pilotage.api.preemption.VictimSearch`; valid until the cluster changes."""

    def __init__(
        self, trial: Trial, dry_run: DryRun, nodes: NodeTable, budgets: DisruptionBudgets, outcomes: Outcomes
    ) -> None:
        self._trial = trial
        self._dry_run = dry_run
        self._nodes = nodes
        self._budgets = budgets
        self._outcomes = outcomes
        self._refused: list[int] = []
        self.candidates: list[Candidate] = []
        self.errors: list[Exception] = []

    def go(self, rows: Rows, wanted: int) -> None:
        """Try the rows in order until `wanted` candidates are found, one of them without a violation."""
        codes = self._outcomes.codes[rows]
        last = len(rows)
        is_one_harmless = False
        for place in np.flatnonzero((codes == CANDIDATE) | (codes == UNKNOWN)).tolist():
            row = int(rows[place])
            candidate = self._outcomes.candidates.get(row) or self._tried(row)
            if candidate is None:
                continue
            self.candidates.append(candidate)
            is_one_harmless |= not candidate.violations
            if is_one_harmless and len(self.candidates) >= wanted:
                last = place + 1
                break
        self._note_others(rows[:last])

    def _tried(self, row: int) -> Candidate | None:
        """Work out what is not known of a row; None unless it is a candidate."""
        if self._trial.is_too_full(row, self._rivals(row)):
            self._outcomes.codes[row] = HOPELESS
            return None
        outcome = self._outcome(row)
        self._outcomes.note(row, outcome)
        if not isinstance(outcome, Candidate):
            return None
        if self._budgets.concern(self._trial.lower_pods(row)):
            self._outcomes.budgeted.add(row)
        return outcome

    def _outcome(self, row: int) -> Candidate | Refused | Exception:
        try:
            return try_node(self._trial, row, self._rivals(row), self._budgets)
        except (PluginError, NoVictimNeeded) as error:
            return error

    def _rivals(self, row: int) -> list[Pod]:
        return self._dry_run.rivals_on(self._trial.pod, self._nodes.names[row])

    def _note_others(self, tried: Rows) -> None:
        codes = self._outcomes.codes[tried]
        self._refused = tried[(codes >= 0) | (codes == HOPELESS)].tolist()
        broken = tried[codes == BROKEN].tolist()
        self.errors = [self._outcomes.errors[row] for row in broken]

    def refusals(self) -> Mapping[str, tuple[str, Refusal]]:
        found = {row: self._refusal(row) for row in self._refused}
        names = self._nodes.names
        return {names[row]: (refused.plugin, refused.refusal) for row, refused in found.items()}

    def message(self) -> str:
        counts: Counter[str] = Counter()
        for refused, count in self._refused_counts().items():
            counts.update({reason.message: count for reason in refused.refusal.reasons})
        untried = len(self._nodes) - len(self._refused)
        if untried:
            counts[_NOT_HELPFUL] += untried
        return unavailable_text(len(self._nodes), counts)

    def _refused_counts(self) -> Mapping[Refused, int]:
        counts: Counter[Refused] = Counter()
        codes, numbers = np.unique(self._outcomes.codes[self._refused], return_counts=True)
        for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
            if code >= 0:
                counts[self._outcomes.refusals[code]] += number
        for row in self._refused:
            if self._outcomes.codes[row] < 0:
                counts[self._refusal(row)] += 1
        return counts

    def _refusal(self, row: int) -> Refused:
        """Who refuses a row; worked out now if only the fact was known."""
        code = int(self._outcomes.codes[row])
        if code >= 0:
            return self._outcomes.refusals[code]
        outcome = self._outcome(row)
        if isinstance(outcome, Refused):
            self._outcomes.note(row, outcome)
            return outcome
        # The filter says one thing of many nodes and another of this one.
        return Refused(ABSENT_PLUGIN, Reject(Reason("Undecided", "filters disagree about the node")))
