"""What is known of each node for one class of pods: candidate, refused and by whom, or not known yet.

Kept as columns, so that a walk over thousands of nodes, most of which were judged for an earlier pod of the class,
looks at few of them in Python.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pilotage.api.preemption import Candidate
from pilotage.api.table import Mask, Rows
from pilotage.framework.diagnosis import Refused
from pilotage.framework.refusal_codes import RefusalCodes

UNKNOWN = -1
PROMISING = -2
"""Nothing in the columns speaks against the node; it has to be looked at closely."""
HARMLESS = -3
"""A candidate."""
VIOLATING = -4
"""A candidate on which a disruption budget would be violated."""
HOPELESS = -5
"""Refused; who refuses, and why, is worked out when somebody asks."""
BROKEN = -6
"""The attempt to find out went wrong."""

_COST_FACTS = 5


class Outcomes:
    """One code per row: one of the constants above, or the number of a refusal."""

    def __init__(self, size: int) -> None:
        self.codes: NDArray[np.int32] = np.full(size, UNKNOWN, dtype=np.int32)
        self.costs: NDArray[np.float64] = np.zeros((_COST_FACTS, size))
        """Of candidates, fact by fact; see `Candidate.cost`."""
        self.candidates: dict[int, Candidate] = {}
        self.errors: dict[int, Exception] = {}
        self.budgeted: set[int] = set()
        """Rows of candidates that were found under the eyes of a disruption budget."""
        self.refusals = RefusalCodes()

    def copy(self) -> Outcomes:
        """For a pod that sees a node with other eyes than its class."""
        copy = Outcomes(0)
        copy.codes = self.codes.copy()
        copy.costs = self.costs.copy()
        copy.candidates = dict(self.candidates)
        copy.errors = dict(self.errors)
        copy.budgeted = set(self.budgeted)
        copy.refusals = self.refusals
        return copy

    def note(self, row: int, outcome: Candidate | Refused | Exception) -> None:
        self.forget([row])
        if isinstance(outcome, Candidate):
            self.codes[row] = VIOLATING if outcome.violations else HARMLESS
            self.costs[:, row] = outcome.cost
            self.candidates[row] = outcome
        elif isinstance(outcome, Refused):
            self.codes[row] = self.refusals.number(outcome)
        else:
            self.codes[row] = BROKEN
            self.errors[row] = outcome

    def forget(self, rows: Iterable[int]) -> None:
        for row in rows:
            if self.candidates.pop(row, None) is not None:
                self.budgeted.discard(row)
            self.errors.pop(row, None)
            self.codes[row] = UNKNOWN

    def unknown(self, rows: Rows) -> Rows:
        found: Rows = rows[self.codes[rows] == UNKNOWN]
        return found

    def cheapest(self, rows: Rows) -> int:
        """Of these rows, which are candidates, the one with the smallest cost; the first of equals."""
        for fact in self.costs:
            if len(rows) == 1:
                break
            here = fact[rows]
            rows = rows[here == here.min()]
        return int(rows[0])


def is_candidate(codes: NDArray[np.int32]) -> Mask:
    found: Mask = (codes == HARMLESS) | (codes == VIOLATING)
    return found


def is_open(codes: NDArray[np.int32]) -> Mask:
    """Not decided yet."""
    found: Mask = (codes == UNKNOWN) | (codes == PROMISING)
    return found
