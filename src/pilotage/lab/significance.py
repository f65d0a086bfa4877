"""Is a difference between two groups of runs more than chance?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from pilotage.rng import seeded

TEST: Final = "two-sided permutation test of the difference of means"
_MOST_EXACT: Final = 20_000
"""So many ways to divide the values are all looked at; of more, so many are drawn."""
_TOLERANCE: Final = 1e-9


def p_value(first: Sequence[float], second: Sequence[float]) -> float | None:
    """How often values that were dealt to the two groups by chance differ at least as much in their means as these.

    None where that says nothing: a group has fewer than two values, or both are the same value over and over, which
    is what seeds give that decide nothing.
    """
    values = np.array([*first, *second], dtype=np.float64)
    count = len(first)
    if min(count, len(second)) < 2 or not np.isfinite(values).all() or (_is_constant(first) and _is_constant(second)):
        return None
    sums = values[_divisions(len(values), count)].sum(axis=1)
    differences = np.abs(sums / count - (values.sum() - sums) / (len(values) - count))
    found = abs(values[:count].mean() - values[count:].mean())
    is_as_large = differences >= found - _TOLERANCE * float(np.abs(values).max())
    return float(is_as_large.mean())


def least_p(first: int, second: int) -> float:
    """The smallest value that so many runs can give."""
    return (2 if first == second else 1) / math.comb(first + second, first)


def _is_constant(values: Sequence[float]) -> bool:
    return all(value == values[0] for value in values)


def _divisions(total: int, count: int) -> np.ndarray:
    """Which values are dealt to the first group: a row per way, the way that was found included."""
    if math.comb(total, count) <= _MOST_EXACT:
        return np.array(list(combinations(range(total), count)))
    rng = seeded(0)
    drawn = [rng.sample(range(total), count) for _ in range(_MOST_EXACT - 1)]
    return np.array([list(range(count)), *drawn])


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 if all have the same, 1/n if one of n has everything; 1 of nothing."""
    column = np.array(values, dtype=np.float64)
    squares = float((column**2).sum()) * len(column)
    return float(column.sum()) ** 2 / squares if squares else 1.0
