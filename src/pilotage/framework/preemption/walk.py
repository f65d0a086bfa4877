"""One pod's walk over the nodes, and what it has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from pilotage.api.preemption import Candidate
from pilotage.api.results import Reason, Refusal, Reject
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.framework.diagnosis import ABSENT_PLUGIN, Refused, unavailable_text
from pilotage.framework.dry_run import DryRun, Trial
from pilotage.framework.errors import PluginError
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.outcomes import BROKEN, HARMLESS, HOPELESS, Outcomes, is_candidate, is_open
from pilotage.framework.preemption.victims import NoVictimNeeded, try_node
from pilotage.model import Pod

_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_UNDECIDED = Refused(ABSENT_PLUGIN, Reject(Reason("Undecided", "filters disagree about the node")))
"""A plugin says one thing of many nodes at once, and another of a single one."""


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
        self._tried_rows: Rows = np.empty(0, dtype=np.int64)

    def go(self, rows: Rows, wanted: int) -> None:
        """Try the rows in order until `wanted` candidates are found, one of them without a violation."""
        codes = self._outcomes.codes[rows]
        is_known = is_candidate(codes)
        known_so_far = is_known.cumsum()
        first_harmless = _first(codes == HARMLESS)
        found = 0
        for place in is_open(codes).nonzero()[0].tolist():
            if known_so_far[place] + found >= wanted and first_harmless < place:
                break
            candidate = self._try(int(rows[place]))
            if candidate is not None:
                found += 1
                first_harmless = min(first_harmless, place if not candidate.violations else len(rows))
        self._tried_rows = rows[: self._end(rows, wanted)]

    def _end(self, rows: Rows, wanted: int) -> int:
        """Up to where rows had to be tried: there were enough candidates, and one was harmless."""
        codes = self._outcomes.codes[rows]
        enough = _first(is_candidate(codes).cumsum() >= wanted)
        return min(max(enough, _first(codes == HARMLESS)) + 1, len(rows))

    # --- what was found ----------------------------------------------------------------------------------------

    @property
    def candidates(self) -> list[Candidate]:
        return [self._outcomes.candidates[row] for row in self._candidate_rows().tolist()]

    @property
    def best(self) -> Candidate | None:
        rows = self._candidate_rows()
        return self._outcomes.candidates[self._outcomes.cheapest(rows)] if len(rows) else None

    @property
    def errors(self) -> list[Exception]:
        broken = self._tried_rows[self._outcomes.codes[self._tried_rows] == BROKEN]
        return [self._outcomes.errors[row] for row in broken.tolist()]

    def refusals(self) -> Mapping[str, tuple[str, Refusal]]:
        found = {row: self._refusal(row) for row in self._refused_rows().tolist()}
        names = self._nodes.names
        return {names[row]: (refused.plugin, refused.refusal) for row, refused in found.items()}

    def message(self) -> str:
        counts: Counter[str] = Counter()
        rows = self._refused_rows()
        for row in rows[self._outcomes.codes[rows] == HOPELESS].tolist():
            self._refusal(row)
        numbers, repeats = np.unique(self._outcomes.codes[rows], return_counts=True)
        for number, count in zip(numbers.tolist(), repeats.tolist(), strict=True):
            refused = self._outcomes.refusals[number] if number >= 0 else _UNDECIDED
            counts.update({reason.message: count for reason in refused.refusal.reasons})
        if len(rows) < len(self._nodes):
            counts[_NOT_HELPFUL] += len(self._nodes) - len(rows)
        return unavailable_text(len(self._nodes), counts)

    def _candidate_rows(self) -> Rows:
        found: Rows = self._tried_rows[is_candidate(self._outcomes.codes[self._tried_rows])]
        return found

    def _refused_rows(self) -> Rows:
        codes = self._outcomes.codes[self._tried_rows]
        found: Rows = self._tried_rows[(codes >= 0) | (codes == HOPELESS)]
        return found

    # --- one row -----------------------------------------------------------------------------------------------

    def _try(self, row: int) -> Candidate | None:
        """Work out what is not known of a row; None unless it is a candidate."""
        if self._is_too_full(row):
            self._outcomes.codes[row] = HOPELESS
            return None
        outcome = self._outcome(row)
        self._outcomes.note(row, outcome)
        if not isinstance(outcome, Candidate):
            return None
        if self._budgets.concern(self._trial.lower_pods(row)):
            self._outcomes.budgeted.add(row)
        return outcome

    def _is_too_full(self, row: int) -> bool:
        try:
            return self._trial.is_too_full(row, self._rivals(row))
        except PluginError:
            # Whoever tries the node will meet the same error.
            return False

    def _outcome(self, row: int) -> Candidate | Refused | Exception:
        try:
            return try_node(self._trial, row, self._rivals(row), self._budgets)
        except (PluginError, NoVictimNeeded) as error:
            return error

    def _rivals(self, row: int) -> list[Pod]:
        return self._dry_run.rivals_on(self._trial.pod, self._nodes.names[row])

    def _refusal(self, row: int) -> Refused:
        """Who refuses a row; worked out now if only the fact was known."""
        code = int(self._outcomes.codes[row])
        if code >= 0:
            return self._outcomes.refusals[code]
        outcome = self._outcome(row)
        if not isinstance(outcome, Refused):
            return _UNDECIDED
        self._outcomes.note(row, outcome)
        return outcome


def _first(mask: Mask) -> int:
    """The first place where the mask is True; its length if there is none."""
    place = int(mask.argmax()) if len(mask) else 0
    return place if len(mask) and mask[place] else len(mask)
