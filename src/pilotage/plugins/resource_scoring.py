"""How good a node is by what it would have left: the scoring strategies of NodeResourcesFit.

Each strategy turns (requested, capacity) of one resource into 0..100, for one node or for a column of nodes, and says
how the scores of several resources are joined. All arithmetic is on integers, as in kube-scheduler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pilotage.api import Scores
from pilotage.plugins.args import ScoringStrategy, UtilizationShapePoint

MAX_SCORE = 100
_SHAPE_SCALE = 10
_LARGEST = int(np.iinfo(np.int64).max)
_LARGEST_PART = _LARGEST // 100


class Strategy(ABC):
    """Scores one resource; `join` averages several."""

    counts_zero: ClassVar[bool] = True
    """Whether a resource that scores 0 takes part in the average."""

    @abstractmethod
    def score(self, requested: int, capacity: int) -> int:
        """For one node; capacity is not 0."""

    @abstractmethod
    def score_all(self, requested: Scores, capacity: Scores) -> Scores:
        """For a column of nodes; whatever it gives where the capacity is 0 is not used."""

    def join(self, total: int, weights: int) -> int:
        return total // weights if weights else 0

    def counts_all(self, scores: Scores) -> Scores | bool:
        return True

    def join_all(self, totals: Scores, weights: Scores) -> Scores:
        return totals // np.maximum(weights, 1)


class ShareStrategy(Strategy):
    """How much a part of the capacity is, in percent."""

    @abstractmethod
    def part(self, requested: NDArray[Any], capacity: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The part that counts, in a column of the same type; `out` may be `requested`."""

    def score_all(self, requested: Scores, capacity: Scores) -> Scores:
        return percent(self.part(requested, capacity), capacity)


class LeastAllocated(ShareStrategy):
    """The share that stays free."""

    def score(self, requested: int, capacity: int) -> int:
        return max(capacity - requested, 0) * MAX_SCORE // capacity

    def part(self, requested: NDArray[Any], capacity: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        left: NDArray[Any] = np.subtract(capacity, requested, out=out)
        np.maximum(left, 0, out=left)
        return left


class MostAllocated(ShareStrategy):
    """The share that is used: packs nodes."""

    def score(self, requested: int, capacity: int) -> int:
        return min(requested, capacity) * MAX_SCORE // capacity

    def part(self, requested: NDArray[Any], capacity: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        used: NDArray[Any] = np.minimum(requested, capacity, out=out)
        return used


class RequestedToCapacityRatio(Strategy):
    """A broken line over the used share."""

    counts_zero = False

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._by_percent = np.array([broken_line(shape, percent) for percent in range(101)], dtype=np.int64)

    def score(self, requested: int, capacity: int) -> int:
        return int(self._by_percent[min(requested * 100 // capacity, 100) if requested <= capacity else 100])

    def score_all(self, requested: Scores, capacity: Scores) -> Scores:
        used = percent(np.minimum(requested, capacity), capacity)
        score: Scores = self._by_percent[np.where(requested > capacity, 100, np.clip(used, 0, 100))]
        return score

    def join(self, total: int, weights: int) -> int:
        return (2 * total + weights) // (2 * weights) if weights else 0

    def counts_all(self, scores: Scores) -> Scores | bool:
        return (scores > 0).astype(np.int64)

    def join_all(self, totals: Scores, weights: Scores) -> Scores:
        # Half away from zero; totals are never negative.
        safe = np.maximum(weights, 1)
        joined: Scores = (2 * totals + safe) // (2 * safe)
        return joined


def plus(column: Scores, amount: int) -> Scores:
    """An amount more in every row, as far as 64 bits go."""
    return np.minimum(column, _LARGEST - amount) + amount


def percent(part: Scores, whole: Scores) -> Scores:
    """`part` of `whole` in percent, rounded down; any value where the whole is 0."""
    found: Scores = part * 100 // np.maximum(whole, 1)
    if part.size and part.max() > _LARGEST_PART:
        # A node that says it has exbibytes must not spoil the scores of all: 64 bits do not hold the product.
        large = part > _LARGEST_PART
        found[large] = [
            int(one) * 100 // int(all_of_it) for one, all_of_it in zip(part[large], whole[large], strict=True)
        ]
    return found


def broken_line(shape: Sequence[UtilizationShapePoint], at: int) -> int:
    """The value at `at` of the line through the points; divisions truncate toward zero."""
    first = shape[0]
    if at <= first.utilization:
        return first.score * _SHAPE_SCALE
    for left, right in pairwise(shape):
        if at <= right.utilization:
            rise = (right.score - left.score) * _SHAPE_SCALE * (at - left.utilization)
            # int() truncates where // would floor: slopes may fall.
            return left.score * _SHAPE_SCALE + int(rise / (right.utilization - left.utilization))
    return shape[-1].score * _SHAPE_SCALE


def strategy_of(args: ScoringStrategy) -> Strategy:
    if args.type == "MostAllocated":
        return MostAllocated()
    if args.type == "RequestedToCapacityRatio" and args.requested_to_capacity_ratio is not None:
        return RequestedToCapacityRatio(args.requested_to_capacity_ratio.shape)
    return LeastAllocated()
