"""One pod's walk over the nodes, and what it has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pilotage.api.preemption import Candidate, VictimPolicy
from pilotage.api.results import Reason, Reject, Rejection
from pilotage.api.table import Rows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.diagnosis import ABSENT_PLUGIN, Rejected, unavailable_text
from pilotage.framework.dry_run import DryRun, PodFilters
from pilotage.framework.errors import PluginError
from pilotage.framework.preemption.outcomes import BROKEN, HARMLESS, HOPELESS, Outcomes, is_candidate, is_open
from pilotage.framework.preemption.units import VictimUnits
from pilotage.framework.preemption.victims import KUBE_SCHEDULERS, NoVictimNeeded, try_node
from pilotage.model import Pod

_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_UNDECIDED = Rejected(ABSENT_PLUGIN, Reject(Reason("Undecided", "filters disagree about the node")))
"""A plugin says one thing of many nodes at once, and another of a single one."""


class Walk:
    """Implements `pilotage.api.preemption.VictimSearch`; valid until the cluster changes."""

    is_reviewed = False

    def __init__(
        self,
        filters: PodFilters,
        dry_run: DryRun,
        nodes: ClusterNodeTable,
        units: VictimUnits,
        outcomes: Outcomes,
        policy: VictimPolicy = KUBE_SCHEDULERS,
    ) -> None:
        self._filters = filters
        self._dry_run = dry_run
        self._nodes = nodes
        self._units = units
        self._outcomes = outcomes
        self._policy = policy
        self._tried_rows: Rows = np.empty(0, dtype=np.int64)
        self._candidate_rows = self._tried_rows

    def go(self, rows: Rows, wanted: int) -> None:
        """Try the rows in order until `wanted` candidates are found, one of them without a violation."""
        outcomes = self._outcomes
        codes = outcomes.codes[rows]
        end = _end(codes, wanted)
        for place in is_open(codes[:end]).nonzero()[0].tolist():
            if place >= end:
                break
            row = int(rows[place])
            if self._try(row):
                codes[place] = outcomes.codes[row]
                if len(outcomes.candidates) >= wanted:
                    end = _end(codes, wanted)
        self._tried_rows = rows[:end]
        self._candidate_rows = self._tried_rows[is_candidate(codes[:end])]

    # --- what was found ----------------------------------------------------------------------------------------

    @property
    def candidates(self) -> list[Candidate]:
        return [self._outcomes.candidates[row] for row in self._candidate_rows.tolist()]

    @property
    def best(self) -> Candidate | None:
        rows = self._candidate_rows
        return self._outcomes.candidates[self._outcomes.cheapest(rows)] if len(rows) else None

    @property
    def errors(self) -> list[Exception]:
        broken = self._tried_rows[self._outcomes.codes[self._tried_rows] == BROKEN]
        return [self._outcomes.errors[row] for row in broken.tolist()]

    def rejections(self) -> Mapping[str, tuple[str, Rejection]]:
        found = {row: self._rejection(row) for row in self._rejected_rows().tolist()}
        names = self._nodes.names
        return {names[row]: (rejected.plugin, rejected.rejection) for row, rejected in found.items()}

    def rejectors(self) -> frozenset[str]:
        return frozenset(rejected.plugin for rejected, _ in self._rejection_counts) - {ABSENT_PLUGIN}

    def message(self) -> str:
        counts: Counter[str] = Counter()
        for rejected, rows in self._rejection_counts:
            counts.update({reason.message: rows for reason in rejected.rejection.reasons})
        hopeless = len(self._nodes) - len(self._rejected_rows())
        if hopeless:
            counts[_NOT_HELPFUL] += hopeless
        return unavailable_text(len(self._nodes), counts)

    @cached_property
    def _rejection_counts(self) -> list[tuple[Rejected, int]]:
        """Each rejection, and of how many rows."""
        rows = self._rejected_rows()
        for row in rows[self._outcomes.codes[rows] == HOPELESS].tolist():
            self._rejection(row)
        codes = self._outcomes.codes[rows]
        counts = enumerate(np.bincount(codes[codes >= 0]).tolist())
        decided = [(self._outcomes.rejections[number], count) for number, count in counts if count]
        undecided = len(codes) - sum(count for _, count in decided)
        return [(_UNDECIDED, undecided), *decided] if undecided else decided

    def _rejected_rows(self) -> Rows:
        codes = self._outcomes.codes[self._tried_rows]
        found: Rows = self._tried_rows[(codes >= 0) | (codes == HOPELESS)]
        return found

    # --- one row -----------------------------------------------------------------------------------------------

    def _try(self, row: int) -> bool:
        """Work out what is not known of a row; True if it is a candidate."""
        if self._policy is KUBE_SCHEDULERS and self._is_too_full(row):
            self._outcomes.codes[row] = HOPELESS
            return False
        outcome = self._outcome(row)
        self._outcomes.note(row, outcome)
        if not isinstance(outcome, Candidate):
            return False
        if self._units.budgets.concern((*self._filters.lower_pods(row), *outcome.victims)):
            self._outcomes.budgeted.add(row)
        if any(victim.node_name != outcome.node_name for victim in outcome.victims):
            self._outcomes.reaching_elsewhere.add(row)
        return True

    def _is_too_full(self, row: int) -> bool:
        rivals = self._rivals(row)
        if not rivals:
            # Then the first question to the node itself is the same.
            return False
        try:
            return self._filters.is_too_full(row, rivals)
        except PluginError:
            # Every attempt on this node will meet the same error.
            return False

    def _outcome(self, row: int) -> Candidate | Rejected | Exception:
        try:
            return try_node(self._filters, row, self._rivals(row), self._units, self._policy)
        except (PluginError, NoVictimNeeded) as error:
            return error

    def _rivals(self, row: int) -> list[Pod]:
        return self._dry_run.rivals_on(self._filters.pod, self._nodes.names[row])

    def _rejection(self, row: int) -> Rejected:
        """Who rejects a row; worked out now if only the fact was known."""
        code = int(self._outcomes.codes[row])
        if code >= 0:
            return self._outcomes.rejections[code]
        outcome = self._outcome(row)
        if not isinstance(outcome, Rejected):
            return _UNDECIDED
        self._outcomes.note(row, outcome)
        return outcome


def _end(codes: NDArray[np.int32], wanted: int) -> int:
    """Up to where rows have to be tried: there are enough candidates, and one is harmless."""
    enough = int(is_candidate(codes).cumsum().searchsorted(wanted))
    if enough == len(codes):
        return enough
    is_harmless = codes == HARMLESS
    first_harmless = int(is_harmless.argmax())
    return max(enough, first_harmless) + 1 if is_harmless[first_harmless] else len(codes)
