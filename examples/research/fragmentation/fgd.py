"""FGD, fragmentation gradient descent: where the pod leaves the least that typical pods cannot use.

To a typical pod, what is left of a node's GPUs is a fragment: all of it, if the pod cannot run there (or wants no GPU);
else what is left of the GPUs that have less than it wants. The fragmentation of a node is the mean over typical pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpu_books import WHOLE, GpuBooks, GpuPolicy, Wanted

from pilotage.api import Handle, Scores

Column = np.ndarray[Any, Any]


@dataclass(frozen=True)
class FGDArgs:
    """`typicalPods` in pluginConfig: "milli-CPU GPUs milli-of-each models": share of all pods."""

    typical_pods: Mapping[str, float] = field(default_factory=dict)


class Typical:
    """Typical pods as columns."""

    def __init__(self, pods: Mapping[str, float]) -> None:
        parts = [text.split() for text in pods]
        self._share = np.array(list(pods.values()))
        self._cpu, self._count, milli = np.array([part[:3] for part in parts], dtype=np.int64).reshape(-1, 3).T
        self.sizes, self._size_of = np.unique(milli, return_inverse=True)
        self._models = [frozenset(part[3].split("|")) if part[3:] else frozenset() for part in parts]

    def allowed(self, models: Sequence[str]) -> Column:
        """Of each typical pod and node: may it use this model?"""
        return np.array([[not wanted or one in wanted for one in models] for wanted in self._models], dtype=np.bool_)

    def fragments(self, books: GpuBooks, rows: Column, cpu: Column, whole: int = 0, part: int = 0) -> Column:
        """The fragmentation of nodes, after so many whole GPUs were given.

        After a part of one was given: of every node (rows) for every GPU that it may be of (columns).
        """
        left, size = books.left[rows], self.sizes[:, None, None]
        is_low, is_enough = left < size, left >= np.maximum(size, 1)
        low, enough = np.where(is_low, left, 0).sum(axis=2), is_enough.sum(axis=2) - whole
        total = left.sum(axis=1) - whole * WHOLE
        allowed = self.allowed([books.models[row] for row in rows.tolist()])
        if part:
            after = left - part
            low = low[:, :, None] - np.where(is_low, left, 0) + np.where(after < size, after, 0)
            enough = enough[:, :, None] - is_enough + (after >= np.maximum(size, 1))
            total, cpu, allowed = (total - part)[:, None], cpu[:, None], allowed[:, :, None]
        return self._mean(cpu, total, low, enough, allowed)

    def _mean(self, cpu: Column, total: Column, low: Column, enough: Column, allowed: Column) -> Column:
        shape = (-1, *[1] * (low.ndim - 1))
        count, needs = self._count.reshape(shape), self._cpu.reshape(shape)
        is_useless = (count == 0) | ~allowed | (cpu < needs) | (enough[self._size_of] < count)
        return np.tensordot(self._share, np.where(is_useless, total, low[self._size_of]), axes=1)


class FGD(GpuPolicy):
    args_type = FGDArgs

    def __init__(self, handle: Handle, args: FGDArgs) -> None:
        super().__init__(handle)
        self._typical = Typical(args.typical_pods)

    def points(self, rows: Column, free_cpu: Scores, wanted: Wanted) -> Scores:
        before, cpu = self._typical.fragments(self._books, rows, free_cpu), free_cpu - wanted.cpu
        if 0 < wanted.milli < WHOLE:
            return np.maximum(self._by_device(rows, before, cpu, wanted).max(axis=1), 0)
        return _points(before - self._typical.fragments(self._books, rows, cpu, wanted.count))

    def devices(self, row: int, free_cpu: int, wanted: Wanted) -> Sequence[int]:
        if wanted.milli == WHOLE:
            return super().devices(row, free_cpu, wanted)
        rows, free = np.array([row]), np.array([free_cpu])
        before = self._typical.fragments(self._books, rows, free)
        return [int(self._by_device(rows, before, free - wanted.cpu, wanted)[0].argmax())]

    def _by_device(self, rows: Column, before: Column, cpu: Column, wanted: Wanted) -> Column:
        """Points of each node and GPU; -1 where too little is left."""
        fragments = self._typical.fragments(self._books, rows, cpu, part=wanted.milli)
        return np.where(self._books.left[rows] >= wanted.milli, _points(before[:, None] - fragments), -1)


def _points(less: Column) -> Column:
    # Sums of the same numbers in another order are not equal to the last digit.
    return (100 / (1 + np.exp(-np.round(less, 6) / 1000))).astype(np.int64)
