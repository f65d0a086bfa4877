"""What is known of each node for one class of pods: candidate, refused and by whom, or not known yet.

Kept as a column of small numbers, so that a walk over thousands of nodes, most of which were judged for an earlier pod
of the class, looks at few of them in Python.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pilotage.api.preemption import Candidate
from pilotage.api.table import Rows
from pilotage.framework.diagnosis import Refused
from pilotage.framework.refusal_codes import RefusalCodes

UNKNOWN = -1
CANDIDATE = -2
HOPELESS = -3
"""Refused; who refuses, and why, is worked out when somebody asks."""
BROKEN = -4
"""The attempt to find out went wrong."""

Codes = NDArray[np.int32]


class Outcomes:
    """One number per row: one of the constants above, or the number of a refusal."""

    def __init__(self, size: int) -> None:
        self.codes: Codes = np.full(size, UNKNOWN, dtype=np.int32)
        self.candidates: dict[int, Candidate] = {}
        self.errors: dict[int, Exception] = {}
        self.budgeted: set[int] = set()
        """Rows of candidates that were found under the eyes of a disruption budget."""
        self.refusals = RefusalCodes()

    def copy(self) -> Outcomes:
        """For a pod that sees a node with other eyes than its class."""
        copy = Outcomes(0)
        copy.codes = self.codes.copy()
        copy.candidates = dict(self.candidates)
        copy.errors = dict(self.errors)
        copy.budgeted = set(self.budgeted)
        copy.refusals = self.refusals
        return copy

    def note(self, row: int, outcome: Candidate | Refused | Exception) -> None:
        self.forget([row])
        if isinstance(outcome, Candidate):
            self.codes[row] = CANDIDATE
            self.candidates[row] = outcome
        elif isinstance(outcome, Refused):
            self.codes[row] = self.refusals.number(outcome)
        else:
            self.codes[row] = BROKEN
            self.errors[row] = outcome

    def forget(self, rows: Iterable[int]) -> None:
        for row in rows:
            if self.codes[row] in (CANDIDATE, BROKEN):
                self.candidates.pop(row, None)
                self.errors.pop(row, None)
                self.budgeted.discard(row)
            self.codes[row] = UNKNOWN

    def unknown(self, rows: Rows) -> Rows:
        found: Rows = rows[self.codes[rows] == UNKNOWN]
        return found
