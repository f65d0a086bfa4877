"""What is remembered of the nodes: the cheapest candidate is found, however candidates come and go."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pilotage.api.preemption import Candidate
from pilotage.framework.preemption.outcomes import Outcomes, is_candidate


@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize("distinct", [1, 4, 1000])
def test_the_cheapest_is_the_first_with_the_smallest_cost(size: int, distinct: int) -> None:
    rng = random.Random(size * distinct)
    outcomes = Outcomes(size)
    for step in range(40 * size):
        row = rng.randrange(size)
        if step % 5 == 0:
            outcomes.forget([row])
        else:
            cost = (0, rng.randrange(distinct), rng.randrange(distinct))
            outcomes.note(row, Candidate(f"n{row}", (), 0, cost))
        if step % 11 == 0:
            outcomes = outcomes.copy()
        rows = np.array(rng.sample(range(size), size))
        rows = rows[is_candidate(outcomes.codes[rows])]
        assert sorted(rows.tolist()) == sorted(outcomes.candidates)
        if len(rows):
            assert outcomes.cheapest(rows) == min(rows.tolist(), key=lambda at: outcomes.candidates[at].cost)
