"""What is known of each node for one class of pods: candidate, rejected and by whom, or not known yet.

Kept as columns, so that a walk over thousands of nodes, most of which were judged for an earlier pod of the class,
looks at few of them in Python.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pilotage.api.preemption import Candidate
from pilotage.api.table import Mask, Rows
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.rejection_codes import RejectionCodes

HOPELESS = -1
"""Rejected; who rejects, and why, is worked out on request."""
BROKEN = -2
"""The attempt to find out went wrong."""
VIOLATING = -3
"""A candidate on which a disruption budget would be violated."""
HARMLESS = -4
"""A candidate."""
MAY_HELP = -5
"""Nothing in the columns speaks against the node; it has to be looked at closely."""
UNKNOWN = -6


class Outcomes:
    """One code per row: one of the constants above, or the number of a rejection."""

    def __init__(self, size: int) -> None:
        self.codes: NDArray[np.int32] = np.full(size, UNKNOWN, dtype=np.int32)
        self.candidates: dict[int, Candidate] = {}
        self.errors: dict[int, Exception] = {}
        self.budgeted: set[int] = set()
        """Rows of candidates that were found under the eyes of a disruption budget."""
        self.reaching_elsewhere: set[int] = set()
        """Rows of candidates with victims on other nodes: what changes there concerns them too."""
        self.rejections = RejectionCodes()
        self._costs: list[tuple[float, ...]] = []
        """Of all candidates that there were, each once, in order."""
        self._ranks: NDArray[np.int32] = np.zeros(size, dtype=np.int32)
        """Where the cost of a candidate is in that order."""

    def copy(self) -> Outcomes:
        """For a pod that sees a node with other eyes than its class."""
        copy = Outcomes(0)
        copy.codes = self.codes.copy()
        copy.candidates = dict(self.candidates)
        copy.errors = dict(self.errors)
        copy.budgeted = set(self.budgeted)
        copy.reaching_elsewhere = set(self.reaching_elsewhere)
        copy.rejections = self.rejections
        copy._costs = list(self._costs)
        copy._ranks = self._ranks.copy()
        return copy

    def note(self, row: int, outcome: Candidate | Rejected | Exception) -> None:
        self.forget([row])
        if isinstance(outcome, Candidate):
            self.codes[row] = VIOLATING if outcome.violations else HARMLESS
            self._ranks[row] = self._rank(outcome.cost)
            self.candidates[row] = outcome
        elif isinstance(outcome, Rejected):
            self.codes[row] = self.rejections.number(outcome)
        else:
            self.codes[row] = BROKEN
            self.errors[row] = outcome

    def forget(self, rows: Iterable[int]) -> None:
        for row in rows:
            if self.candidates.pop(row, None) is not None:
                self.budgeted.discard(row)
                self.reaching_elsewhere.discard(row)
            self.errors.pop(row, None)
            self.codes[row] = UNKNOWN

    def unknown(self, rows: Rows) -> Rows:
        found: Rows = rows[self.codes[rows] == UNKNOWN]
        return found

    def cheapest(self, rows: Rows) -> int:
        """Of these rows, which are candidates, the one with the smallest cost; the first of equals."""
        return int(rows[self._ranks[rows].argmin()])

    def _rank(self, cost: tuple[float, ...]) -> int:
        rank = bisect_left(self._costs, cost)
        if rank == len(self._costs) or self._costs[rank] != cost:
            if len(self._costs) > 2 * len(self._ranks):
                self._forget_old_costs()
                return self._rank(cost)
            self._costs.insert(rank, cost)
            self._ranks[self._ranks >= rank] += 1
        return rank

    def _forget_old_costs(self) -> None:
        self._costs = sorted({candidate.cost for candidate in self.candidates.values()})
        for row, candidate in self.candidates.items():
            self._ranks[row] = bisect_left(self._costs, candidate.cost)


def is_candidate(codes: NDArray[np.int32]) -> Mask:
    found: Mask = (codes == HARMLESS) | (codes == VIOLATING)
    return found


def is_open(codes: NDArray[np.int32]) -> Mask:
    """Not decided yet."""
    found: Mask = codes <= MAY_HELP
    return found
